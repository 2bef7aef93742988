//! What stays in a namespace while it is checked: sockets, programs of BPF, settings without a command of their own.

use std::any::Any;
use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
use rxpath_host::netlink::Netlink;
use rxpath_host::netlink::wire::Body;

use super::traffic;
use crate::raw_bpf;

/// Kept until the check is over.
pub type Held = Box<dyn Any + Send>;

/// A thread that works until it is dropped.
struct Worker(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Worker {
    fn start(job: impl FnOnce(&AtomicBool) + Send + 'static) -> Held {
        let stop = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&stop);
        Box::new(Self(stop, Some(std::thread::spawn(move || job(&own)))))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let ended = self.1.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|it| it.is_ok()) || std::thread::panicking());
    }
}

fn udp_socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 9999)).unwrap()
}

pub fn unread_datagrams() -> Held {
    Box::new(udp_socket())
}

pub fn read_datagrams() -> Held {
    let socket = udp_socket();
    // On a busy machine the reader is late, and what is lost then would be found.
    setsockopt(&socket, RcvBufForce, &(16 << 20)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    Worker::start(move |stop| {
        let mut text = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            let _ = socket.recv(&mut text);
        }
    })
}

/// A listener whose queue holds one connection, and which accepts none.
pub fn deaf_listener() -> Held {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 7000)).unwrap();
    // SAFETY: listen takes a descriptor that is open, and a number.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 1) }, 0);
    Box::new(listener)
}

/// A program that accepts connections with buffers of a fixed size and never reads.
pub fn unread_connections() -> Held {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 7000)).unwrap();
    setsockopt(&listener, RcvBuf, &65_536).unwrap();
    listener.set_nonblocking(true).unwrap();
    Worker::start(move |stop| {
        let mut kept: Vec<TcpStream> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            kept.extend(listener.accept().map(|(stream, _)| stream));
            std::thread::sleep(Duration::from_millis(2));
        }
    })
}

struct Reader(TcpListener);

impl Drop for Reader {
    fn drop(&mut self) {
        traffic::end(&self.0);
    }
}

pub fn read_connections() -> Held {
    Box::new(Reader(traffic::reader(7001)))
}

pub fn packet_socket() -> Held {
    const ALL: u16 = 3;
    // SAFETY: no pointer is handed over.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(ALL.to_be())) };
    assert!(fd >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the kernel just made this descriptor for us.
    Box::new(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The reader's end of the device `tun7`, which reads nothing.
pub fn unread_tun() -> Held {
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    let tun: File = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
    // struct ifreq: the name, then IFF_TUN | IFF_NO_PI.
    let mut ask = [0_u8; 40];
    ask[..4].copy_from_slice(b"tun7");
    ask[16..18].copy_from_slice(&0x1001_u16.to_ne_bytes());
    // SAFETY: the request takes a structure of 40 bytes, which outlives the call.
    let done = unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETIFF, ask.as_mut_ptr()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    Box::new(tun)
}

fn turn_off(dev: &str, features: &[&str]) -> Held {
    let wanted: Vec<(&str, bool)> = features.iter().map(|name| (*name, false)).collect();
    Netlink::generic().unwrap().want_features(dev, &wanted).unwrap();
    Box::new(())
}

pub fn no_tso() -> Held {
    turn_off("veth", &["tx-tcp-segmentation"])
}

pub fn no_gso() -> Held {
    turn_off("veth", &["tx-generic-segmentation"])
}

pub fn no_gro_of_vxlan() -> Held {
    turn_off("vx7", &["rx-gro"])
}

/// The index of the veth here.
fn veth() -> u32 {
    if_nametoindex("veth").unwrap()
}

const XDP: u32 = 6;
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_HOOK: u32 = 37;
const GENERIC: u32 = 2;
const NATIVE: u32 = 4;

fn xdp(answer: u32, mode: u32) -> Held {
    let program = raw_bpf::answering(XDP, answer, "planted").unwrap();
    let link = raw_bpf::attach(&program, veth(), [XDP_HOOK, mode]).unwrap();
    Box::new((program, link))
}

pub fn xdp_native_drop() -> Held {
    xdp(XDP_DROP, NATIVE)
}

pub fn xdp_generic_drop() -> Held {
    xdp(XDP_DROP, GENERIC)
}

pub fn xdp_generic_pass() -> Held {
    xdp(XDP_PASS, GENERIC)
}

/// `TC_ACT_SHOT`.
const SHOT: u32 = 2;

pub fn tcx_drop() -> Held {
    const INGRESS: u32 = 46;
    let program = raw_bpf::answering(raw_bpf::SCHED_CLS, SHOT, "planted").unwrap();
    let link = raw_bpf::attach(&program, veth(), [INGRESS, 0]).unwrap();
    Box::new((program, link))
}

/// A filter of the clsact qdisc that drops each packet (net/sched/cls_bpf.c).
pub fn tc_drop() -> Held {
    const NEW_FILTER: u16 = 44;
    const CREATE: u16 = 0x600;
    const INGRESS: u32 = 0xffff_fff2;
    let program = raw_bpf::answering(raw_bpf::SCHED_CLS, SHOT, "planted").unwrap();
    // struct tcmsg; the last word has the preference and the protocol, which is all.
    let info = 1 << 16 | u32::from(3_u16.to_be());
    let header: Vec<u8> =
        [0, veth(), 0, INGRESS, info].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let (fd, name, flags, direct) = (6, 7, 8, 1);
    let options = Body::default()
        .u32(fd, program.as_raw_fd() as u32)
        .text(name, "planted")
        .u32(flags, direct);
    let body = Body::new(&header).text(1, "bpf").nest(2, &options);
    Netlink::route().unwrap().change("add a filter", NEW_FILTER, CREATE, body.bytes()).unwrap();
    Box::new(program)
}

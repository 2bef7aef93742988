//! Which socket of a `SO_REUSEPORT` group gets a datagram: a classic BPF program.

use crate::engine::socket::Socket;

/// `BPF_LD | BPF_W | BPF_ABS`.
const LOAD: u16 = 0x20;
/// `BPF_JMP | BPF_JEQ | BPF_K`.
const JUMP_EQUAL: u16 = 0x15;
/// `BPF_ALU | BPF_MOD | BPF_K`.
const MODULO: u16 = 0x94;
/// `BPF_RET | BPF_K` and `BPF_RET | BPF_A`.
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;

/// Steers to the socket of the thread that is pinned to the CPU on which the softirq runs, and by CPU
/// number modulo sockets where there is none.
///
/// **Source** `run_bpf_filter`, `net/core/sock_reuseport.c`: the program's result is the index of the socket.
pub fn by_cpu(first: &Socket, cpus: &[u32], sockets: usize) -> std::io::Result<()> {
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let cpu = (libc::SKF_AD_OFF + libc::SKF_AD_CPU) as u32;
    let mut program = vec![op(LOAD, 0, 0, cpu)];
    for (index, cpu) in cpus.iter().enumerate() {
        program.push(op(JUMP_EQUAL, 0, 1, *cpu));
        program.push(op(RETURN, 0, 0, index as u32));
    }
    program.push(op(MODULO, 0, 0, sockets as u32));
    program.push(op(RETURN_A, 0, 0, 0));
    first.attach_reuseport(&mut program)
}

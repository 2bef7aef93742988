//! The network of the site: further hosts and wires, routers, links that go away.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::Command;

use rxpath_host::Target;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::write::netlink::qdisc::QdiscSpec;
use rxpath_host::write::setter::{HostSetter, Setter};

use super::{Site, tool};
use crate::over_ssh::relay::{Relay, Trouble, tap};
use crate::raw_bpf;

impl Site {
    /// Adds a second receiver, `sut2`, and a bridge by which `gen1` reaches both: the inventory of the three.
    pub fn add_receiver(&mut self) -> String {
        let sut2 = Namespace::create(&self.bed.owner, "sut2").unwrap();
        sut2.disable_ipv6().unwrap();
        self.coordinator.veth_to("sut2", &sut2, "mgmt", 1).unwrap();
        self.gen1.run(|_| tool("ip", &["link", "add", "lan", "type", "bridge"])).unwrap();
        for (port, ns) in [("lan1", &self.sut), ("lan2", &sut2)] {
            self.gen1.veth_to(port, ns, "lan", 1).unwrap();
            self.gen1
                .run(move |_| tool("ip", &["link", "set", port, "master", "lan", "up"]))
                .unwrap();
        }
        for (ns, dev, ip) in [
            (&self.coordinator, "sut2", "10.78.6.1"),
            (&sut2, "mgmt", "10.78.6.2"),
            (&self.gen1, "lan", "10.78.5.1"),
            (&self.sut, "lan", "10.78.5.2"),
            (&sut2, "lan", "10.78.5.3"),
        ] {
            ns.add_address(dev, ip.parse().unwrap(), 24).unwrap();
            ns.set_up(dev, true).unwrap();
        }
        let daemon = self.daemon(&sut2, &[], &[]);
        self.daemons.push(daemon);
        self.wait_for_sshd("10.78.6.2:22");
        self.sut2 = Some(sut2);
        self.store_on("sut2");
        let of = |alias: &str, address: &str| {
            format!(
                "[hosts.{alias}]\nssh = \"{alias}.lab\"\nrole = \"receiver\"\naddr = [\"{address}\"]\ndir = \"{}-{alias}\"\n",
                self.path("cache")
            )
        };
        let hosts = self.read_inventory();
        let sender = hosts.split("[hosts.sut]").next().unwrap();
        let all = [sender, &of("sut", "10.78.5.2"), &of("sut2", "10.78.5.3")].concat();
        self.write("three.toml", &all)
    }

    /// Adds a second receiver, and a second sender on the same bridge, `gen2`: the inventory of the four.
    pub fn add_receiver_and_sender(&mut self) -> String {
        let three = self.add_receiver();
        let gen2 = Namespace::create(&self.bed.owner, "gen2").unwrap();
        gen2.disable_ipv6().unwrap();
        self.coordinator.veth_to("gen2", &gen2, "mgmt", 1).unwrap();
        self.gen1.veth_to("lan3", &gen2, "lan", 1).unwrap();
        let join = ["link", "set", "lan3", "master", "lan", "up"];
        self.gen1.run(move |_| tool("ip", &join)).unwrap();
        for (ns, dev, ip) in [
            (&self.coordinator, "gen2", "10.78.9.1"),
            (&gen2, "mgmt", "10.78.9.2"),
            (&gen2, "lan", "10.78.5.4"),
        ] {
            ns.add_address(dev, ip.parse().unwrap(), 24).unwrap();
            ns.set_up(dev, true).unwrap();
        }
        let daemon = self.daemon(&gen2, &[], &[]);
        self.daemons.push(daemon);
        self.wait_for_sshd("10.78.9.2:22");
        self.gen2 = Some(gen2);
        self.store_on("gen2");
        let (hosts, cache) = (fs::read_to_string(three).unwrap(), self.path("cache"));
        let own = format!(
            "[hosts.gen2]\nssh = \"gen2.lab\"\nrole = \"sender\"\ndir = \"{cache}-gen2\"\n"
        );
        self.write("four.toml", &(hosts + &own))
    }

    /// Starts sshd of `sut` again, with process ids of its own: as of a clone of a virtual machine its boot id is that of `gen1`,
    /// and neither sees a process of the other.
    pub fn make_sut_a_clone(&mut self) {
        self.daemons[1].kill().unwrap();
        self.daemons[1].wait().unwrap();
        let own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
        self.daemons[1] = self.daemon(&self.sut, &[], &own);
        self.wait_for_sshd("10.78.2.2:22");
    }

    /// Lays a wire of TAP devices with trouble on the way to the receiver, and gives the inventory that uses it.
    pub fn wire_with(&self, trouble: Trouble) -> (Relay, String) {
        let ends = [(&self.gen1, "10.78.4.1"), (&self.sut, "10.78.4.2")];
        let [from, to] = ends.map(|(ns, address)| {
            let end = tap(ns, "wire");
            // Room for all datagrams of a trial: only the relay may lose one, however long it waits for a CPU.
            let long = |_: &mut _| {
                HostSetter::default().write(&"wire/link".parse().unwrap(), "txqueuelen=20000")
            };
            ns.run(long).unwrap().unwrap();
            ns.add_address("wire", address.parse().unwrap(), 24).unwrap();
            ns.set_up("wire", true).unwrap();
            end
        });
        let hosts = self.read_inventory().replace("10.78.3.2", "10.78.4.2");
        (Relay::between(from, to, trouble), self.write("wire.toml", &hosts))
    }

    /// Joins two links between the hosts: a bridge at `gen1`, at `sut` a bond of which one member is in use, `member1`. Gives
    /// the inventory that uses it; or says why it can't.
    pub fn bond(&self) -> Result<String, String> {
        let words = "link add bond0 type bond mode active-backup miimon 100";
        let made = move || Command::new("ip").args(words.split(' ')).output().unwrap();
        let made = self.sut.run(move |_| made()).unwrap();
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        self.gen1.run(|_| tool("ip", &["link", "add", "trunk", "type", "bridge"])).unwrap();
        for (port, member) in [("trunk1", "member1"), ("trunk2", "member2")] {
            self.gen1.veth_to(port, &self.sut, member, 1).unwrap();
            self.gen1
                .run(move |_| tool("ip", &["link", "set", port, "master", "trunk", "up"]))
                .unwrap();
            // It has to be down for that.
            self.sut.run(move |_| tool("ip", &["link", "set", member, "master", "bond0"])).unwrap();
        }
        for (ns, dev, ip) in [(&self.gen1, "trunk", "10.78.8.1"), (&self.sut, "bond0", "10.78.8.2")]
        {
            ns.add_address(dev, ip.parse().unwrap(), 24).unwrap();
            ns.set_up(dev, true).unwrap();
        }
        let hosts = self.read_inventory().replace("10.78.3.2", "10.78.8.2");
        Ok(self.write("bond.toml", &hosts))
    }

    /// Makes a VLAN of the wire at both ends and gives the inventory that uses it; or says why it can't.
    pub fn vlan_of_wire(&self) -> Result<String, String> {
        for (ns, address) in [(&self.gen1, "10.78.7.1"), (&self.sut, "10.78.7.2")] {
            let words = "link add link wire name wire.5 type vlan id 5";
            let made = ns.run(move |_| Command::new("ip").args(words.split(' ')).output().unwrap());
            let made = made.unwrap();
            if !made.status.success() {
                return Err(String::from_utf8_lossy(&made.stderr).into_owned());
            }
            ns.add_address("wire.5", address.parse().unwrap(), 24).unwrap();
            ns.set_up("wire.5", true).unwrap();
        }
        let hosts = self.read_inventory().replace("10.78.3.2", "10.78.7.2");
        Ok(self.write("vlan.toml", &hosts))
    }

    /// Lays a second wire from `gen1` to `sut`, between devices `other`, by which `gen1` sends to the address of `data` of `sut`.
    pub fn add_second_path(&self) {
        self.gen1.veth_to("other", &self.sut, "other", 1).unwrap();
        for ns in [&self.gen1, &self.sut] {
            ns.set_up("other", true).unwrap();
            // Answers come by another device than the one that packets leave by.
            for device in ["all", "data", "other"] {
                let path = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
                ns.run(move |_| fs::write(path, "0").unwrap()).unwrap();
            }
        }
        let route = ["route", "add", "10.78.3.2/32", "dev", "other", "src", "10.78.3.1"];
        self.gen1.run(move |_| tool("ip", &route)).unwrap();
    }

    /// Joins `gen1` and `sut` by a second network, between devices `more`.
    pub fn add_network(&self) {
        self.gen1.veth_to("more", &self.sut, "more", 1).unwrap();
        for (ns, ip) in [(&self.gen1, "10.78.9.1"), (&self.sut, "10.78.9.2")] {
            ns.add_address("more", ip.parse().unwrap(), 24).unwrap();
            ns.set_up("more", true).unwrap();
        }
    }

    /// Lays a second path from `gen1` to the address of `sut` towards the coordinator: by the coordinator, which forwards
    /// and answers for it, so that no route shows a router.
    pub fn hide_a_router(&self) {
        let settings = ["ip_forward", "conf/gen1/proxy_arp", "conf/sut/proxy_arp"];
        let set = |ns: &Namespace, name: &str, value: &'static str| {
            let path = format!("/proc/sys/net/ipv4/{name}");
            ns.run(move |_| fs::write(path, value).unwrap()).unwrap();
        };
        for setting in settings {
            set(&self.coordinator, setting, "1");
        }
        // An answer for another host waits for up to 0.8 s by default.
        for device in ["gen1", "sut"] {
            set(&self.coordinator, &format!("neigh/{device}/proxy_delay"), "0");
        }
        for (ns, route) in [(&self.gen1, "10.78.2.0/24"), (&self.sut, "10.78.1.0/24")] {
            let added = ns.run(move |_| {
                Command::new("ip").args(["route", "add", route, "dev", "mgmt"]).status().unwrap()
            });
            assert!(added.unwrap().success(), "{route}");
        }
    }

    /// Puts a queueing discipline on a device of a host, or says why this kernel can't.
    pub fn queue(&self, alias: &str, device: &str, spec: QdiscSpec) -> Result<(), String> {
        self.host(alias).set_qdisc(device, Some(spec)).map_err(|error| error.to_string())
    }

    /// Attaches a program to the egress of a device as one of tcx, until the link is dropped, or says why this kernel can't.
    pub fn tcx_egress(
        &self,
        alias: &str,
        device: &'static str,
        code: &'static [u64],
    ) -> Result<OwnedFd, String> {
        const EGRESS: u32 = 47;
        let attached = self.host(alias).run(move |ns| {
            let ifindex = ns.route().unwrap().link(device).unwrap().index;
            let program = raw_bpf::load(raw_bpf::SCHED_CLS, code, "rxp_drops")?;
            raw_bpf::attach(&program, ifindex, [EGRESS, 0])
        });
        attached.unwrap().map_err(|error| error.to_string())
    }

    /// Takes a device of a host down.
    pub fn take_down(&self, alias: &str, device: &str) {
        self.host(alias).set_up(device, false).unwrap();
    }

    /// Takes a device of a host down and up again.
    pub fn flap(&self, alias: &str, device: &str) {
        for up in [false, true] {
            self.host(alias).set_up(device, up).unwrap();
        }
    }

    /// Sets speed and duplex of a TAP device of a host, as pairs: nothing but these numbers changes.
    pub fn set_speed(&self, alias: &str, device: &str, pairs: &'static str) {
        let link: Target = format!("{device}/link-modes").parse().unwrap();
        let set = move |_: &mut _| HostSetter::default().write(&link, pairs);
        self.host(alias).run(set).unwrap().unwrap();
    }

    /// Loads rules of nftables on a host.
    pub fn filter(&self, alias: &str, rules: &str) {
        self.host(alias).apply_nft(rules).unwrap();
    }
}

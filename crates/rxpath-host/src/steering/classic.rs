//! What a classic BPF program on a SO_REUSEPORT group says of a flow.
//!
//! The question it answers: *which index does the program return for packets of this flow?* It runs the program over
//! what is known of the packets. Where the program looks at something else (the payload, the packet's hash), the answer
//! depends on it, and the reason is reported; nothing is guessed.
//!
//! **Source** net/core/sock_reuseport.c `run_bpf_filter`: the program sees the packet from its payload on, headers at
//! the negative offsets of include/uapi/linux/filter.h; what it returns is the index of the socket.

use std::net::IpAddr;

use super::{Flow, Protocol};

/// One instruction (`struct sock_filter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Class, operation and mode.
    pub code: u16,
    /// How many instructions to pass over when the condition is true.
    pub if_true: u8,
    /// How many when it is false.
    pub if_false: u8,
    /// Its constant.
    pub k: u32,
}

/// Bytes of an instruction.
pub const INSTRUCTION: usize = 8;

/// Reads instructions as the kernel keeps them; bytes left over at the end are no instruction.
pub fn parse(bytes: &[u8]) -> Vec<Instruction> {
    let one = |raw: &[u8]| Instruction {
        code: u16::from_ne_bytes([raw[0], raw[1]]),
        if_true: raw[2],
        if_false: raw[3],
        k: u32::from_ne_bytes([raw[4], raw[5], raw[6], raw[7]]),
    };
    bytes.chunks_exact(INSTRUCTION).map(one).collect()
}

/// What is known of the packets in addition to their flow.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The flow.
    pub flow: Flow,
    /// The CPU that their softirq runs on.
    pub cpu: u32,
    /// Index of the device; 0 when it is not known.
    pub ifindex: u32,
}

/// A number, or what it depends on.
type Value = Result<u32, &'static str>;

const PAYLOAD: &str = "the program looks at the payload";
const HASH: &str = "the program looks at the packet's hash, whose key is secret";
const HEADER: &str = "the program looks at header fields that a flow does not fix";
const LENGTH: &str = "the program looks at the packet's length";
const OTHER: &str = "the program looks at something that a flow does not fix";
const NO_INDEX: &str = "it was not known that the program needs the device's index";

/// `SKF_AD_OFF`, `SKF_NET_OFF` (include/uapi/linux/filter.h).
const ANCILLARY: i64 = -0x1000;
const NETWORK: i64 = -0x10_0000;

/// The value of the program for such a packet.
///
/// **Errors** what it depends on that is not known; a program that the kernel would not have taken.
pub fn run(program: &[Instruction], arrival: &Arrival) -> Result<u32, String> {
    let mut state = State { a: Ok(0), x: Ok(0), memory: [Err(OTHER); 16] };
    let mut at = 0;
    // Jumps go forward only (kernel: bpf_check_classic), so the length bounds the steps.
    while let Some(step) = program.get(at) {
        at += 1;
        match state.step(*step, arrival)? {
            Next::Go => {}
            Next::Over(count) => at += count,
            Next::Return(value) => return Ok(value),
        }
    }
    Err("the program has no end".into())
}

enum Next {
    Go,
    Over(usize),
    Return(u32),
}

struct State {
    a: Value,
    x: Value,
    memory: [Value; 16],
}

impl State {
    fn step(&mut self, step: Instruction, arrival: &Arrival) -> Result<Next, String> {
        let bad = || format!("the instruction {:#x} is not known", step.code);
        let slot = (step.k as usize).min(15);
        match step.code & 7 {
            0 => self.a = self.load(step, arrival),
            1 => {
                self.x = match step.code & 0xe0 {
                    0x00 => Ok(step.k),
                    0x60 => self.memory[slot],
                    0x80 => Err(LENGTH),
                    _ => Err(PAYLOAD),
                }
            }
            2 => self.memory[slot] = self.a,
            3 => self.memory[slot] = self.x,
            4 => match self.arithmetic(step) {
                Some(value) => self.a = value,
                // Division by a zero in X ends the program with 0 (kernel: bpf_convert_filter).
                None => return Ok(Next::Return(0)),
            },
            5 => return self.jump(step).map(Next::Over),
            6 => {
                let value = if step.code & 0x18 == 0x10 { self.a } else { Ok(step.k) };
                return value.map(Next::Return).map_err(str::to_owned);
            }
            7 if step.code & 0xf8 == 0x80 => self.a = self.x,
            7 if step.code & 0xf8 == 0x00 => self.x = self.a,
            _ => return Err(bad()),
        }
        Ok(Next::Go)
    }

    fn load(&self, step: Instruction, arrival: &Arrival) -> Value {
        let size = match step.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            _ => 1,
        };
        match step.code & 0xe0 {
            0x00 => Ok(step.k),
            0x20 => packet(i64::from(step.k as i32), size, arrival),
            0x40 => packet(i64::from(self.x?) + i64::from(step.k as i32), size, arrival),
            0x60 => self.memory[(step.k as usize).min(15)],
            0x80 => Err(LENGTH),
            _ => Err(OTHER),
        }
    }

    fn operand(&self, step: Instruction) -> Value {
        if step.code & 8 == 0 { Ok(step.k) } else { self.x }
    }

    /// The new value of A; `None` for a division by zero.
    fn arithmetic(&self, step: Instruction) -> Option<Value> {
        let values = self.a.and_then(|a| self.operand(step).map(|b| (a, b)));
        let (a, b) = match values {
            Ok(both) => both,
            Err(why) => return Some(Err(why)),
        };
        Some(Ok(match step.code & 0xf0 {
            0x00 => a.wrapping_add(b),
            0x10 => a.wrapping_sub(b),
            0x20 => a.wrapping_mul(b),
            0x30 => a.checked_div(b)?,
            0x40 => a | b,
            0x50 => a & b,
            // The kernel's own instructions take the count modulo 32 (Documentation/bpf/standardization).
            0x60 => a.wrapping_shl(b),
            0x70 => a.wrapping_shr(b),
            0x80 => a.wrapping_neg(),
            0x90 => a.checked_rem(b)?,
            0xa0 => a ^ b,
            _ => return Some(Err(OTHER)),
        }))
    }

    fn jump(&self, step: Instruction) -> Result<usize, String> {
        if step.code & 0xf0 == 0 {
            return Ok(step.k as usize);
        }
        let (a, b) = (self.a?, self.operand(step)?);
        let holds = match step.code & 0xf0 {
            0x10 => a == b,
            0x20 => a > b,
            0x30 => a >= b,
            0x40 => a & b != 0,
            _ => return Err(OTHER.into()),
        };
        Ok(usize::from(if holds { step.if_true } else { step.if_false }))
    }
}

/// What the packet holds at an offset.
fn packet(offset: i64, size: usize, arrival: &Arrival) -> Value {
    if offset >= 0 {
        return Err(PAYLOAD);
    }
    if offset >= ANCILLARY {
        return ancillary(offset - ANCILLARY, arrival);
    }
    if offset < NETWORK {
        return Err(HEADER);
    }
    let at = usize::try_from(offset - NETWORK).map_err(|_| HEADER)?;
    let header = headers(arrival.flow);
    let bytes = header.get(at..at + size).ok_or(HEADER)?;
    bytes.iter().try_fold(0u32, |value, byte| Ok((value << 8) | u32::from((*byte).ok_or(HEADER)?)))
}

/// `SKF_AD_*` (include/uapi/linux/filter.h).
fn ancillary(what: i64, arrival: &Arrival) -> Value {
    match what {
        // Protocol: the EtherType.
        0 => Ok(if arrival.flow.source.is_ipv4() { 0x0800 } else { 0x86dd }),
        // Packet type: to this host.
        4 => Ok(0),
        8 => Some(arrival.ifindex).filter(|index| *index != 0).ok_or(NO_INDEX),
        32 => Err(HASH),
        36 => Ok(arrival.cpu),
        _ => Err(OTHER),
    }
}

/// Network header without options, and ports: the bytes that a flow fixes.
fn headers(flow: Flow) -> Vec<Option<u8>> {
    let protocol = match flow.protocol {
        Protocol::Udp => 17,
        Protocol::Tcp => 6,
    };
    let mut bytes = match (flow.source.ip(), flow.destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut bytes = vec![None; 20];
            bytes[0] = Some(0x45);
            bytes[9] = Some(protocol);
            place(&mut bytes[12..16], &from.octets());
            place(&mut bytes[16..20], &to.octets());
            bytes
        }
        (from, to) => {
            let mut bytes = vec![None; 40];
            bytes[6] = Some(protocol);
            place(&mut bytes[8..24], &super::flow::octets(from));
            place(&mut bytes[24..40], &super::flow::octets(to));
            bytes
        }
    };
    for port in [flow.source.port(), flow.destination.port()] {
        bytes.extend(port.to_be_bytes().map(Some));
    }
    bytes
}

fn place(into: &mut [Option<u8>], bytes: &[u8]) {
    for (slot, byte) in into.iter_mut().zip(bytes) {
        *slot = Some(*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn op(code: u16, if_true: u8, if_false: u8, k: u32) -> Instruction {
        Instruction { code, if_true, if_false, k }
    }

    fn arrival(text: &str) -> Arrival {
        Arrival { flow: text.parse().unwrap(), cpu: 3, ifindex: 0 }
    }

    const V4: &str = "10.0.0.2:4001->10.0.0.1:4321/udp";

    #[test]
    fn the_cpu_and_the_source_port_choose() {
        let cpu = [op(0x20, 0, 0, 0xffff_f024), op(0x94, 0, 0, 2), op(0x16, 0, 0, 0)];
        assert_eq!(run(&cpu, &arrival(V4)), Ok(1));
        // The source port stands behind a network header of 20 bytes, in IPv6 of 40.
        for (text, at) in [(V4, 20), ("[fd00::2]:4001->[fd00::1]:4321/udp", 40)] {
            let port = [op(0x28, 0, 0, 0xfff0_0000 + at), op(0x54, 0, 0, 7), op(0x16, 0, 0, 0)];
            assert_eq!(run(&port, &arrival(text)), Ok(4001 % 8), "{text}");
        }
    }

    #[test]
    fn branches_follow_what_is_known() {
        let by_address = [
            op(0x20, 0, 0, 0xfff0_000c),
            op(0x15, 0, 1, 0x0a00_0002),
            op(0x06, 0, 0, 2),
            op(0x06, 0, 0, 0),
        ];
        assert_eq!(run(&by_address, &arrival(V4)), Ok(2));
        assert_eq!(run(&by_address, &arrival("10.0.0.3:4001->10.0.0.1:4321/udp")), Ok(0));
    }

    #[test]
    fn what_a_flow_does_not_fix_is_said() {
        for (load, why) in [
            (op(0x30, 0, 0, 0), "payload"),
            (op(0x20, 0, 0, 0xffff_f020), "hash"),
            (op(0x80, 0, 0, 0), "length"),
            (op(0x30, 0, 0, 0xfff0_0001), "header fields"),
            (op(0x20, 0, 0, 0xffff_f008), "index"),
        ] {
            let error = run(&[load, op(0x16, 0, 0, 0)], &arrival(V4)).unwrap_err();
            assert!(error.contains(why), "{error}");
            // What is loaded and thrown away decides nothing.
            assert_eq!(run(&[load, op(0x06, 0, 0, 1)], &arrival(V4)), Ok(1));
        }
    }

    #[test]
    fn a_division_by_zero_ends_it_with_zero() {
        assert_eq!(
            run(&[op(0x00, 0, 0, 7), op(0x3c, 0, 0, 0), op(0x06, 0, 0, 9)], &arrival(V4)),
            Ok(0)
        );
    }

    proptest! {
        #[test]
        fn no_program_panics_or_goes_on_for_ever(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = run(&parse(&bytes), &arrival(V4));
        }
    }
}

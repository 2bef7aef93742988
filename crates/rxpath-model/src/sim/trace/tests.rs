use super::*;
use proptest::prelude::*;

fn read(bytes: &[u8]) -> Result<Vec<Arrival>, TraceError> {
    TraceReader::new(bytes)?.collect()
}

fn refused(bytes: &[u8]) -> String {
    let error = read(bytes).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn lines_begin_at_zero_and_may_be_commented() {
    let got = read(b"# made by hand\n1000,32,1\n\n1500, 64, 2\n1500,9\n").unwrap();
    let wanted = [(0, 32, 1), (500, 64, 2), (500, 9, 0)];
    assert_eq!(got, wanted.map(|(at, bytes, flow)| Arrival { at, bytes, flow }));
}

#[test]
fn bad_lines_are_told_with_their_number() {
    for (text, words) in [
        ("5,32,1\n4,32,1\n", "line 2: time goes backwards by 1 ns"),
        ("# x\n5,0,1\n", "line 2: a packet of 0 bytes"),
        ("5,32,1,9\n", "line 1: `5,32,1,9` is not `ns,bytes,flow`"),
        ("5\n", "line 1: `5` is not"),
        ("-5,3,1\n", "line 1: `-5,3,1` is not"),
        ("1,70000,1\n", "line 1"),
        ("5,32,1\n60,32,1", "line 2: the file ends inside this line"),
        ("5,32,1\n60,3", "line 2: the file ends inside this line"),
    ] {
        let error = refused(text.as_bytes());
        assert!(error.contains(words), "{error}");
    }
    assert!(refused("9".repeat(1000).as_bytes()).contains("line 1"));
    assert_eq!(read(b"").unwrap(), []);
}

/// A capture of UDP datagrams: seconds, fraction, payload, source port.
fn capture(big: bool, nano: bool, packets: &[(u32, u32, u16, u16)]) -> Vec<u8> {
    let four = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let magic = if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file =
        [four(magic), four(0x0004_0002), four(0), four(0), four(65_535), four(1)].concat();
    for (seconds, fraction, payload, port) in packets {
        let mut frame = vec![0; 12];
        frame.extend([
            0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame.extend(port.to_be_bytes());
        frame.extend(4321_u16.to_be_bytes());
        frame.extend((payload + 8).to_be_bytes());
        frame.extend([0, 0]);
        let kept = frame.len() as u32;
        for n in [*seconds, *fraction, kept, kept + u32::from(*payload)] {
            file.extend(four(n));
        }
        file.extend(frame);
    }
    file
}

#[test]
fn captures_of_both_byte_orders_and_both_clocks() {
    let packets = [(7, 5, 100, 1000), (7, 9, 50, 1001), (8, 1, 100, 1000)];
    for big in [false, true] {
        let micro = read(&capture(big, false, &packets)).unwrap();
        assert_eq!(micro.iter().map(|a| a.at).collect::<Vec<_>>(), [0, 4000, 999_996_000]);
        let nano = read(&capture(big, true, &packets)).unwrap();
        assert_eq!(nano.iter().map(|a| a.at).collect::<Vec<_>>(), [0, 4, 999_999_996]);
        assert_eq!(nano.iter().map(|a| a.bytes).collect::<Vec<_>>(), [100, 50, 100]);
        assert!(nano[0].flow == nano[2].flow && nano[0].flow != nano[1].flow);
    }
}

#[test]
fn damaged_captures_are_told_with_their_packet() {
    let whole = capture(false, false, &[(7, 5, 100, 1000), (6, 9, 50, 1001)]);
    assert!(refused(&whole).contains("packet 2: time goes backwards"));
    assert!(refused(&whole[..whole.len() - 3]).contains("packet 2: the file ends inside it"));
    assert!(refused(&whole[..20]).contains("file header: the file ends inside it"));
    let mut odd = whole.clone();
    odd[24 + 4] = 0xff;
    odd[24 + 7] = 0xff;
    assert!(refused(&odd).contains("packet 1: its header is invalid"));
    assert!(refused(&[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0]).contains("pcapng"));
}

proptest! {
    #[test]
    fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in 0_usize..5) {
        let magics: [&[u8]; 5] = [&[], &[0xd4, 0xc3, 0xb2, 0xa1], &[0xa1, 0xb2, 0xc3, 0xd4], &[0x4d, 0x3c, 0xb2, 0xa1], b"1,2,3\n"];
        bytes.splice(0..0, magics[kind].iter().copied());
        if let Ok(arrivals) = read(&bytes) {
            prop_assert!(arrivals.windows(2).all(|pair| pair[0].at <= pair[1].at));
        }
    }
}

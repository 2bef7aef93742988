use super::*;
use crate::clock::HostClock;
use crate::trial::several::Several;
use std::process::{Command, Stdio};

fn shell(script: &str) -> Program {
    let child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Program::adopt("test", Protocol::Udp, Started::local(Box::new(child))).unwrap()
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_whole_conversation() {
    let never = AtomicBool::new(false);
    let mut program = shell(
        r#"echo '{"type":"settings","schema":"s","size":32}'; echo '{"type":"ready","pid":7,"tids":[8,9]}'
           read order; echo "{\"type\":\"interval\",\"t_ns\":1,\"packets\":2,\"bytes\":3,\"thread_packets\":[],\"thread_cpus\":[]}"
           echo "{\"type\":\"result\",\"order\":\"$order\"}""#,
    );
    program.wait_ready(LONG, &never).unwrap();
    assert_eq!((program.pid, program.tids.as_slice()), (7, [8, 9].as_slice()));
    assert_eq!(program.settings["size"], 32);
    program.order(ControlCommand::Stop).unwrap();
    assert_eq!(program.wait_result(LONG, &never).unwrap()["order"], "stop");
    assert_eq!(program.intervals().len(), 1);
    program.finish(LONG).unwrap();
}

#[test]
fn start_and_end_are_instants_of_the_program_s_own_clock() {
    let never = AtomicBool::new(false);
    let script = r#"read order; echo "{\"type\":\"result\",\"order\":\"$order\"}""#;
    for (until_ns, wanted) in [(Some(20), "start 1010 until 1020"), (None, "start 1010")] {
        let mut program = shell(script);
        program.child.clock = HostClock { ahead_ns: 1_000 };
        program.start(10, until_ns).unwrap();
        assert_eq!(program.wait_result(LONG, &never).unwrap()["order"], wanted);
    }
}

#[test]
fn a_program_says_on_its_own_clock_when_it_began_and_several_say_it_by_host() {
    let never = AtomicBool::new(false);
    let program = |t_ns: u64, late_ns: u64| {
        let mut program = shell(&format!(
            r#"echo '{{"type":"started","t_ns":{t_ns},"late_ns":{late_ns}}}'; echo '{{"type":"result"}}'; read x"#
        ));
        program.child.clock = HostClock { ahead_ns: 1_000 };
        program.wait_result(LONG, &never).unwrap();
        Box::new(program) as Box<dyn Peer>
    };
    let programs: Vec<(String, Box<dyn Peer>)> =
        vec![("gen1".into(), program(1_007, 0)), ("gen2".into(), program(1_040, 31))];
    let several = Several { programs, are_several: false };
    let of = |at_ns, late_ns| vec![Began { at_ns, late_ns }];
    assert_eq!(several.began(), [of(7, 0), of(40, 31)]);
    let silent = shell("read x");
    assert_eq!(silent.began(), [Vec::<Began>::new()]);
}

#[test]
fn a_death_is_told_with_its_last_words() {
    let never = AtomicBool::new(false);
    let mut program = shell("echo 'address in use' >&2; exit 2");
    let told = program.wait_ready(LONG, &never).unwrap_err().to_string();
    assert!(told.contains("exited with 2") && told.contains("address in use"), "{told}");
}

#[test]
fn silence_has_a_limit_and_an_interrupt_cuts_it_short() {
    let mut program = shell("read x");
    let told = program.wait_ready(Duration::from_millis(50), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(told, LabError::Silent { .. }), "{told}");
    let told = program.wait_ready(LONG, &AtomicBool::new(true)).unwrap_err();
    assert!(matches!(told, LabError::Interrupted), "{told}");
}

/// Standard input of a program on a host that does not answer.
struct Unanswered;

impl Write for Unanswered {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        let (host, why) = ("sut".into(), "no answer within 10 s".into());
        Err(std::io::Error::other(LabError::Lost { host, why, last_words: String::new() }))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_order_that_a_host_does_not_answer_is_the_loss_of_the_host() {
    let mut program = shell("read x");
    program.stdin = Some(Box::new(Unanswered));
    let told = program.order(ControlCommand::Stop).unwrap_err();
    assert!(matches!(told, LabError::Lost { .. }), "{told}");
}

//! Killed at every step of applying and undoing: what is on disk then is enough to restore every value.

use rxpath_host::write::fault::{Point, VARIABLE};

use super::place::{Place, WISHES};

/// Where the process may die while a plan is carried out, and how often it comes by.
fn while_applying(point: Point) -> Option<usize> {
    match point {
        Point::TornHead | Point::TornPlanned | Point::TornReached => Some(1),
        Point::BeforeBegin
        | Point::TornBegin
        | Point::AfterBegin
        | Point::AfterWrite
        | Point::BeforeEnd
        | Point::TornEnd
        | Point::AfterEnd => Some(WISHES.len()),
        _ => None,
    }
}

fn is_of_undo(point: Point) -> bool {
    matches!(
        point,
        Point::BeforeRestore | Point::AfterRestore | Point::TornUndone | Point::AfterUndone
    )
}

/// A point that no test of this file passes would be one that nobody looked at.
#[test]
fn every_point_belongs_to_a_command() {
    let watched = [Point::TornWatch, Point::TornConfirmed, Point::TornForgotten];
    for point in Point::ALL {
        let kinds = [while_applying(point).is_some(), is_of_undo(point), watched.contains(&point)];
        assert_eq!(kinds.iter().filter(|is| **is).count(), 1, "{point:?}");
    }
}

#[test]
fn killed_at_any_step_of_applying_it_is_undone() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    for point in Point::ALL {
        for step in 1..=while_applying(point).unwrap_or(0) {
            let fault = format!("{}:{step}", point.name());
            let killed = place.with((VARIABLE, &fault), &["tune", "apply", &plan]);
            assert_eq!(killed.code, None, "{fault}: it must have been killed: {killed:?}");
            place.rxpath(&["tune", "undo", "--all"]).ok();
            assert_eq!(place.snapshot(), place.before, "killed at {fault}");
        }
    }
}

#[test]
fn killed_at_any_step_of_undoing_it_is_undone_by_the_next() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    for point in Point::ALL.into_iter().filter(|point| is_of_undo(*point)) {
        for step in 1..=WISHES.len() {
            let fault = format!("{}:{step}", point.name());
            place.rxpath(&["tune", "apply", &plan]).ok();
            let killed = place.with((VARIABLE, &fault), &["tune", "undo"]);
            assert_eq!(killed.code, None, "{fault}: it must have been killed: {killed:?}");
            place.rxpath(&["tune", "undo", "--all"]).ok();
            assert_eq!(place.snapshot(), place.before, "killed at {fault}");
        }
    }
}

/// A power cut keeps any beginning of the journal. Here the machine goes on, with all changes in force.
#[test]
fn a_journal_cut_at_any_line_or_within_restores_what_it_names() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["veth/napi_defer_hard_irqs=3", "net.ipv4.udp_rmem_min=8192"]);
    place.rxpath(&["tune", "apply", &plan]).ok();
    let path = place.store().path(1);
    let whole = std::fs::read(&path).unwrap();
    let changed = place.snapshot();
    let text = String::from_utf8(whole.clone()).unwrap();
    // All line ends, and some bytes within each line; the units cut at every byte.
    let cuts = (0..=whole.len()).filter(|at| at % 37 == 0 || *at > 0 && whole[at - 1] == b'\n');
    for cut in cuts {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let said = place.rxpath(&["tune", "undo", "1"]);
        assert_eq!(said.code, Some(0), "cut at {cut}: {said:?}");
        let named = text[..cut].rfind('\n').map_or("", |end| &text[..end]);
        let now = place.snapshot();
        for key in ["veth/napi_defer_hard_irqs", "net.ipv4.udp_rmem_min"] {
            let begun = named.contains(&format!("\"begin\",\"n\":0,\"target\":\"{key}\""))
                || named.contains(&format!("\"begin\",\"n\":1,\"target\":\"{key}\""));
            let expected = if begun { &place.before } else { &changed };
            assert_eq!(now[key], expected[key], "{key}, cut at {cut}");
        }
        place.ns.set_dev_attr("veth", "napi_defer_hard_irqs", "3").unwrap();
        place.sysctl("net.ipv4.udp_rmem_min", "8192");
    }
    std::fs::write(&path, &whole).unwrap();
    place.rxpath(&["tune", "undo", "1"]).ok();
    assert_eq!(place.snapshot(), place.before);
}

/// No room for the journal: nothing is changed that could not be undone.
#[test]
fn without_room_for_the_journal_nothing_is_changed() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    let before = place.snapshot();
    let state = place.dir.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let mounted = place.ns.run({
        let state = state.clone();
        move |_| {
            let options = Some("size=4k");
            let flags = nix::mount::MsFlags::empty();
            nix::mount::mount(Some("tmpfs"), &state, Some("tmpfs"), flags, options)
        }
    });
    mounted.unwrap().unwrap();
    // The lock's signature takes the only page.
    let refused = place.rxpath(&["tune", "apply", &plan]);
    assert!(matches!(refused.code, Some(3 | 5)), "{refused:?}");
    assert!(refused.err.contains("No space left"), "{refused:?}");
    assert_eq!(place.snapshot(), before);
}

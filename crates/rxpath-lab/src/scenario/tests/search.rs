//! `[search]`: what it names, and what is wrong with it.

use super::*;

#[test]
fn a_search_has_its_axes_in_the_order_of_the_file() {
    let text = "[search]\nobjective = \"min loss_ratio\"\nguards = [\"delivered_pps>=-5%\"]\nbudget = \"3min\"\n\
         [search.together]\nboth = [\"serve.gro=true\", \"load.gso=8\"]\n[search.axes]\nserve.batch = [1, 64]\n\
         \"serve.rcvbuf\" = [\"1MiB\"]\ntune.receiver.\"{dev}/gro_flush_timeout\" = [10000]";
    let search = resolved(text, &[], 4).unwrap().search.unwrap();
    let axes: Vec<String> = search
        .axes
        .iter()
        .map(|axis| {
            let values: Vec<String> = axis.values.iter().map(|sets| sets.join("+")).collect();
            format!("{}: {}", axis.name, values.join(" "))
        })
        .collect();
    assert_eq!(
        axes,
        [
            "both: serve.gro=true+load.gso=8",
            "serve.batch: serve.batch=1 serve.batch=64",
            "serve.rcvbuf: serve.rcvbuf=1MiB",
            "tune.receiver.{dev}/gro_flush_timeout: tune.receiver.{dev}/gro_flush_timeout=10000",
        ]
    );
    assert_eq!(search.budget.to_string(), "180s");
    let bare = resolved("search.axes.\"serve.batch\" = [64]", &[], 4).unwrap().search.unwrap();
    assert_eq!((bare.objective, bare.budget.to_string()), (None, "1200s".into()));
}

#[test]
fn each_mistake_in_a_search_names_its_line_and_what_would_be_right() {
    let cases = [
        ("[search]\naxis = 1", "t.toml:3: a search has no key `axis`; did you mean `axes`?"),
        (
            "[search]\nbudget = \"9min\"",
            "t.toml:2: there is nothing to try; add such as search.axes.\"serve.rcvbuf\" = [\"1MiB\", \"4MiB\"]",
        ),
        (
            "[search]\nbudget = \"5 parsecs\"\naxes.serve.batch = [1]",
            "t.toml:3: `search.budget`: `5 parsecs` is not a duration: unit `parsecs` is not one of ns, us, µs, ms, s, min, m, h; for example `10min`; write such as \"10min\"",
        ),
        (
            "[search]\nvariant = \"x\"\naxes.serve.batch = [1]",
            "t.toml:3: `x` is no variant of this scenario; variants known here: base",
        ),
        (
            "[search.axes]\nserve.bacth = [1]",
            "t.toml:3: [serve] has no key `bacth`; did you mean `batch`?",
        ),
        (
            "[search.axes]\nserve.batch = 64",
            "t.toml:3: `serve.batch` is no list; it takes a list of the values to try, such as [\"1MiB\", \"4MiB\"]",
        ),
        (
            "[search.axes]\nserve.batch = []",
            "t.toml:3: `serve.batch` has no values; it takes a list of the values to try, such as [\"1MiB\", \"4MiB\"]",
        ),
        (
            "[search.axes]\nserve.batch = [64, 64]",
            "t.toml:3: `serve.batch=64` is listed twice; it takes a list of the values to try, such as [\"1MiB\", \"4MiB\"]",
        ),
        (
            "[search.axes]\nserve.batch = [0]",
            "t.toml:3: `serve.batch` is 0; it takes a whole number from 1 to 1024",
        ),
        (
            "[search.axes]\ntrials.seed = [4]",
            "t.toml:3: `trials.seed` cannot be searched; try keys of lab, tune, background, serve or load: serve.batch",
        ),
        (
            "[search.together]\nboth = [\"serve.batch\"]",
            "t.toml:3: there is no `=`; write KEY=VALUE such as serve.batch=64",
        ),
        (
            "[search.together]\nboth = \"serve.batch=1\"",
            "t.toml:3: `search.together.both`: it is a text; it takes a list; of tables, write [[NAME]] above each",
        ),
        (
            "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[compare]]\nvariant = \"b\"\n[search.axes]\nserve.batch = [4]",
            "t.toml:7: a search is no comparison; leave [[compare]] out: a search compares its start with what it keeps",
        ),
    ];
    each_says(&cases);
}

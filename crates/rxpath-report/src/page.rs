//! The HTML page: frame, order of the sections, style.

mod environment;
mod flows;
pub(crate) mod hosts;
mod ledger;
mod method;
pub(crate) mod part;
mod prediction;
mod reasons;
mod reproduce;
mod river;
mod settings;
pub(crate) mod stolen;
mod traced;
mod trials;
mod verdict;

use maud::{DOCTYPE, PreEscaped};
use rxpath_core::Warning;

use crate::figures;
use crate::prelude::*;

const STYLE: &str = include_str!("page/style.css");

/// Nothing may be loaded, sent or executed; only the page's own style applies.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The report of one run as one HTML file without external parts.
pub fn html(run: &Run) -> String {
    let sections = sections(run);
    let body = html! {
        (river::gradients())
        header { (masthead(run)) }
        nav aria-label="Sections" {
            ol { @for section in &sections { li { a href={ "#" (section.id) } { (section.title) } } } }
        }
        main {
            @for one in &sections { (section(one.id, one.title, one.lead, &one.body)) }
        }
        footer { (footer(run)) }
    };
    frame(&format!("{} · rxpath report", run.title()), &body)
}

/// A numbered part of a page.
pub(crate) fn section(id: &str, title: &str, lead: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) {
            div.head { h2 { (title) } p { (lead) } }
            div.body { (body) }
        }
    }
}

/// A page without external parts.
pub(crate) fn frame(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                // An icon of its own keeps browsers from requesting /favicon.ico.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

fn sections(run: &Run) -> Vec<Section> {
    let all = [
        verdict::section(run),
        ledger::section(run),
        evidence(run),
        stolen::section(run),
        traced::section(run),
        prediction::section(run),
        reasons::section(run),
        flows::section(run),
        hosts::section(run),
        settings::section(run),
        environment::section(run),
        method::section(run),
        trials::section(run),
        reproduce::section(run),
    ];
    all.into_iter().flatten().collect()
}

fn evidence(run: &Run) -> Option<Section> {
    let figures = figures::all(run);
    (!figures.is_empty()).then(|| Section {
        id: "evidence",
        title: "Evidence",
        lead: "The measurements behind the verdict. Every picture has its numbers under it.",
        body: html! { @for figure in &figures { (part::figure(figure)) } },
    })
}

fn masthead(run: &Run) -> Markup {
    let manifest = &run.manifest;
    let said = |text: &str| !text.is_empty();
    html! {
        p.eyebrow { "rxpath report" span { (run.title()) } }
        h1 { @if said(&manifest.question) { (manifest.question) } @else { (run.title()) } }
        (problems(run))
        @if said(&manifest.headline) { p.headline { (manifest.headline) } }
        (warnings(&manifest.warnings))
        @if let Some(expected) = &manifest.expected {
            p.expected { span { "Expected before the run: " } (expected) }
        }
        p.meta {
            span { (run.name()) }
            @if said(&manifest.started) { span { "started " (number::instant(&manifest.started)) } }
            @match &manifest.ended {
                Some(ended) => span { "ended " (number::instant(ended)) },
                None => span { "no end recorded" },
            }
            span { (words::status(manifest.status)) }
            @if said(&manifest.version) { span { "rxpath " (manifest.version) } }
        }
    }
}

/// Problems with the run: above everything else.
fn problems(run: &Run) -> Markup {
    let faults = run.faults();
    html! {
        @if !faults.is_empty() {
            aside.notice.broken role="note" {
                h2 { "This run is incomplete" }
                ul { @for fault in &faults { li { (fault) } } }
                p { "Everything below was read from the run directory and is shown unchanged." }
            }
        }
    }
}

/// Warnings that affect the rest.
fn warnings(warnings: &[Warning]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            aside.notice role="note" {
                h2 { "Before you trust it" }
                ul { @for warning in warnings { li { (warning) } } }
            }
        }
    }
}

fn footer(run: &Run) -> Markup {
    html! {
        p {
            "Made by " code { "rxpath report" } " from the run directory " code { (run.name()) }
            ", without looking at any host. It loads nothing and runs no script."
        }
    }
}

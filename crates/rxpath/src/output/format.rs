//! `--json` and `--format`.

/// The form of the result on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Text for people.
    Table,
    /// One JSON object.
    Json,
}

/// The options; flatten them into every command that prints results.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FormatArgs {
    /// Print the result as JSON (the same as `--format json`)
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Form of the result
    #[arg(long, value_enum)]
    format: Option<Form>,
}

impl FormatArgs {
    /// Whether JSON was asked for.
    pub fn is_json(&self) -> bool {
        self.json || self.format == Some(Form::Json)
    }
}

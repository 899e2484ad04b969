//! stub
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
pub(crate) struct Sources {
    pub variables: BTreeMap<OsString, OsString>,
    pub config_flag: Option<PathBuf>,
    pub directory: PathBuf,
    pub flags: Vec<(&'static str, String, &'static str)>,
}
#[derive(Debug)]
pub(crate) struct Settings;
impl Settings {
    pub(crate) fn load(_: &Sources) -> anyhow::Result<Settings> {
        Ok(Settings)
    }
    pub(crate) fn max_output_size(&self) -> usize {
        51200
    }
    pub(crate) fn enabled_tools(&self) -> Option<Vec<String>> {
        None
    }
    pub(crate) fn secret_variables(&self) -> Vec<OsString> {
        vec!["OPENAI_API_KEY".into()]
    }
    pub(crate) fn render(&self) -> String {
        String::new()
    }
}

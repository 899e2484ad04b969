//! Addresses with their secrets masked.

use crate::escape::escape;
use crate::url::Parts;

const MASK: &str = "***";

/// A parameter is secret if its name contains one of these, or is percent-encoded.
const SECRET_NAMES: &[&str] = &["pass", "pwd", "token", "key", "secret", "auth", "sig", "%"];

/// The address with its password and secret parameters masked, safe for a terminal. An address that
/// cannot be parsed is masked completely after the scheme.
pub(crate) fn mask(url: &str) -> String {
    let masked = match Parts::split(url) {
        Some(parts) => mask_parts(&parts),
        None => mask_wholly(url),
    };
    escape(&masked)
}

fn mask_parts(parts: &Parts<'_>) -> String {
    let Parts { scheme, separator, userinfo, hosts, path, query, fragment } = parts;
    let userinfo = userinfo.map(|userinfo| mask_userinfo(scheme, userinfo)).unwrap_or_default();
    let query = query.map(mask_query).unwrap_or_default();
    let fragment = fragment.map(|_| format!("#{MASK}")).unwrap_or_default();
    format!("{scheme}{separator}{userinfo}{hosts}{path}{query}{fragment}")
}

/// Without a password, the user name of a database is shown. Over HTTP it
/// is not: tokens are passed there.
fn mask_userinfo(scheme: &str, userinfo: &str) -> String {
    match userinfo.split_once(':') {
        Some((user, password)) if !password.is_empty() => format!("{user}:{MASK}@"),
        Some((user, _)) if !scheme.starts_with("http") => format!("{user}:@"),
        None if !scheme.starts_with("http") => format!("{userinfo}@"),
        Some(_) | None => format!("{MASK}@"),
    }
}

fn mask_query(query: &str) -> String {
    let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, value)) if !is_secret(name) => format!("{name}={value}"),
        Some((name, _)) => format!("{name}={MASK}"),
        None => MASK.to_owned(),
    });
    format!("?{}", parameters.collect::<Vec<_>>().join("&"))
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

/// Only `://` distinguishes a scheme from a key or password that contains a colon.
fn mask_wholly(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            format!("{scheme}://{MASK}")
        }
        Some(_) | None => MASK.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(url: &str, expected: &str) {
        assert_eq!(super::mask(url), expected);
    }

    #[test]
    fn secrets_are_masked() {
        check(
            "postgres://me@host:5432/db?sslmode=require",
            "postgres://me@host:5432/db?sslmode=require",
        );
        check("postgres://a:1,[::1]:2/db", "postgres://a:1,[::1]:2/db");
        check("sqlite:///home/a@b/my data/ikigai.db", "sqlite:///home/a@b/my data/ikigai.db");
        check("sqlite::memory:", "sqlite::memory:");
        check("https://api.openai.com/v1", "https://api.openai.com/v1");
    }

    #[test]
    fn passwords_are_masked() {
        check("postgres://me:hunter2@host/db", "postgres://me:***@host/db");
        check("postgres://me:hun:t@er2@host/db", "postgres://me:***@host/db");
        check("postgresql://me:hunter2@[::1]:5432/db", "postgresql://me:***@[::1]:5432/db");
        check("https://me:hunter2@host/v1", "https://me:***@host/v1");
        check("https://hunter2@host/v1", "https://***@host/v1");
        check("https://hunter2:@host/v1", "https://***@host/v1");
    }

    #[test]
    fn secret_parameters_are_masked() {
        check("postgres:///db?user=me&password=hunter2", "postgres:///db?user=me&password=***");
        check(
            "postgres://h/db?sslpassword=hunter2&sslmode=require",
            "postgres://h/db?sslpassword=***&sslmode=require",
        );
        check("postgres://h/db?API_Key=hunter2", "postgres://h/db?API_Key=***");
        check(
            "postgres://h/db?auth_token=hunter2&client_secret=hunter2",
            "postgres://h/db?auth_token=***&client_secret=***",
        );
        check("postgres://h/db?p%61ssword=hunter2", "postgres://h/db?p%61ssword=***");
        check("postgres://h/db?hunter2", "postgres://h/db?***");
        check("https://h/v1#hunter2", "https://h/v1#***");
        check("sqlite:///x.db?key=hunter2", "sqlite:///x.db?key=***");
    }

    #[test]
    fn an_address_that_cannot_be_parsed_is_masked_completely() {
        check("postgres://me:hun/ter2@host/db", "postgres://***");
        check("postgres://me:1/ter2@host/db", "postgres://***");
        check("postgres://me:hun#ter2@host/db", "postgres://***");
        check("postgres://me:1?ter2@host/db", "postgres://***");
        check("postgres://me:hunter2/db", "postgres://***");
        check("postgres://[::1/db", "postgres://***");
        check("hunter2", "***");
        check("hunter2:x", "***");
        check("me:hunter2", "***");
        check("sk-hunter2://x", "***");
        check("POSTGRES://me:hunter2@host/db", "POSTGRES://***");
        check("", "***");
    }

    #[test]
    fn the_result_is_safe_for_a_terminal() {
        check("sqlite:///\u{1b}[2J", "sqlite:///\\u001B[2J");
    }
}

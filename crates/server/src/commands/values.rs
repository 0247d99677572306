//! Values on the command line: durations, times, pairs; and times for people.

use std::time::{Duration, UNIX_EPOCH};

/// A duration such as `30s`, `5m` or `1h 30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; give one such as 500ms, 30s or 2h"))
}

/// Milliseconds of a duration.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A pair such as `name=value`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it is not NAME=VALUE".to_owned()),
    }
}

/// A place in a partition, as the API takes it: `earliest`, `latest`, an offset, or a time.
pub fn place(text: &str) -> Result<String, String> {
    if matches!(text, "earliest" | "latest") || text.parse::<u64>().is_ok() {
        return Ok(text.to_owned());
    }
    if let Some(millis) = text.strip_prefix('@').filter(|millis| millis.parse::<u64>().is_ok()) {
        return Ok(format!("@{millis}"));
    }
    match humantime::parse_rfc3339_weak(text) {
        Ok(time) => {
            let since = time.duration_since(UNIX_EPOCH).map_err(|_| "it is before 1970".to_owned())?;
            Ok(format!("@{}", millis(since)))
        }
        Err(_) => Err(
            "it is no place: give earliest, latest, an offset, @MILLISECONDS or a time such as 2026-05-01T12:00:00Z"
                .to_owned(),
        ),
    }
}

/// A time for people.
pub fn time_text(millis: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    time.map_or_else(
        || millis.to_string(),
        |time| humantime::format_rfc3339_millis(time).to_string(),
    )
}

/// A duration for people.
pub fn duration_text(millis: u64) -> String {
    humantime::format_duration(Duration::from_millis(millis)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_offsets_ends_and_times() {
        assert_eq!(place("17").unwrap(), "17");
        assert_eq!(place("latest").unwrap(), "latest");
        assert_eq!(place("@5").unwrap(), "@5");
        assert_eq!(place("2015-08-30T12:36:00Z").unwrap(), "@1440938160000");
        assert!(place("yesterday").unwrap_err().contains("earliest"));
    }

    #[test]
    fn pairs_have_a_name() {
        assert_eq!(pair("a=b=c").unwrap(), ("a".into(), "b=c".into()));
        assert!(pair("=b").is_err() && pair("a").is_err());
    }
}

//! Times as signatures write them: `20261116T043000Z`.

use millpond_store::Timestamp;

/// Reads a time.
pub fn read(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    if bytes.len() != 16 || bytes.get(8) != Some(&b'T') || bytes.get(15) != Some(&b'Z') {
        return None;
    }
    let number = |from: usize, to: usize| {
        let part = text.get(from..to)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<u64>().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    if year < 1970
        || !(1..=12).contains(&month)
        || !(1..=days_in(year, month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let seconds = ((days_before(year, month) + day - 1) * 24 + hour) * 3_600 + minute * 60 + second;
    Some(Timestamp::from_millis(seconds * 1_000))
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the beginning of a month.
fn days_before(year: u64, month: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1_970) * 365 + leaps(year - 1) - leaps(1_969);
    years + (1..month).map(|month| days_in(year, month)).sum::<u64>()
}

/// Writes a time, for errors.
pub fn write(time: Timestamp) -> String {
    let seconds = time.as_millis() / 1_000;
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut month) = (1_970, 1);
    while days >= if is_leap(year) { 366 } else { 365 } {
        days -= if is_leap(year) { 366 } else { 365 };
        year += 1;
    }
    while days >= days_in(year, month) {
        days -= days_in(year, month);
        month += 1;
    }
    let (day, hour, minute, second) = (days + 1, rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn times_are_read_and_only_times() {
        assert_eq!(read("19700101T000000Z"), Some(Timestamp::from_millis(0)));
        assert_eq!(read("20150830T123600Z"), Some(Timestamp::from_millis(1_440_938_160_000)));
        assert_eq!(read("20240229T000000Z"), Some(Timestamp::from_millis(1_709_164_800_000)));
        for bad in [
            "",
            "20150830T123600",
            "20150230T123600Z",
            "20151330T123600Z",
            "2015-830T123600Z",
            "20150830T243600Z",
            "+0150830T123600Z",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn times_round_trip(seconds in 0..7_000_000_000_u64) {
            let time = Timestamp::from_millis(seconds * 1_000);
            prop_assert_eq!(read(&write(time)), Some(time));
        }
    }
}

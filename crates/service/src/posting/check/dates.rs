//! The dates of a proto-article: written as RFC 5322 and RFC 5536 have it, and not too old or too far ahead.

use newsreel_wire::UnixTime;
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::date::{has_right_weekday, is_in_new_form, parse_rfc5322};

use crate::posting::{PostingConfig, Refused};
use crate::reject::Reject;

/// Fields that hold a date.
const DATES: [Known; 3] = [Known::Date, Known::InjectionDate, Known::Expires];

/// Dates that can be read, and that nobody should write so.
pub(super) fn check_forms(headers: &Headers<'_>) -> Result<(), Refused> {
    // A moderator, or a gateway, posts what somebody else has dated.
    let is_anothers = headers.content(Known::Approved).is_some();
    for (is_good, why) in [
        (has_right_weekday as fn(&[u8]) -> bool, Reject::WrongWeekday),
        (is_in_new_form, Reject::ObsoleteDate),
    ] {
        if is_anothers && why == Reject::ObsoleteDate {
            continue;
        }
        let is_wrong = |field: &Known| headers.content(*field).is_some_and(|it| !is_good(it));
        if let Some(field) = DATES.iter().find(|field| is_wrong(field)) {
            return Err(Refused::of(why, *field));
        }
    }
    Ok(())
}

pub(super) fn check_times(
    headers: &Headers<'_>,
    config: &PostingConfig,
    now: UnixTime,
) -> Result<(), Refused> {
    for (field, future) in [
        (Known::Date, Reject::FutureDate),
        (Known::InjectionDate, Reject::FutureInjectionDate),
    ] {
        let Some(time) = headers
            .content(field)
            .and_then(|date| parse_rfc5322(date).ok())
        else {
            continue;
        };
        if time.0 > now.0.saturating_add(config.future_s_max) {
            return Err(future.into());
        }
        if config.age_s_max > 0 && now.0.saturating_sub(time.0) > config.age_s_max {
            return Err(Refused::of(Reject::TooOld, field));
        }
    }
    Ok(())
}

//! One request under way: who calls, from where, and what of the server an action needs.

use http::request::Parts;
use millpond_queue::Client;
use millpond_store::Timestamp;
use std::sync::Arc;

use crate::actions::Action;
use crate::error::{Failure, Result};
use crate::keys::AccessKey;
use crate::options::{AccountId, Region, SqsOptions};
use crate::place::{Address, Place, check_name};
use crate::registry::Known;
use crate::sqs::Inner;
use crate::watch::{Part, Watch};

/// Who calls.
#[derive(Debug, Clone)]
pub struct Caller<'a> {
    pub region: Region,
    pub account: AccountId,
    /// The key that the request is signed with, when keys are asked for.
    pub key: Option<&'a AccessKey>,
}

/// What queue URLs begin with.
pub enum Base<'a> {
    /// This.
    Given(&'a str),
    /// The address that a request was sent to.
    Of(&'a Parts),
}

/// One request under way.
pub struct Call<'a> {
    pub inner: &'a Arc<Inner>,
    pub action: Action,
    pub caller: Caller<'a>,
    /// What the request's own path names.
    pub path: Option<Address>,
    /// What queue URLs begin with; found out when one is asked for.
    pub base: Base<'a>,
    pub now: Timestamp,
    /// Who wants to know how it goes.
    pub watch: Option<&'a Arc<dyn Watch>>,
}

impl Call<'_> {
    /// The place of a queue of the caller's.
    pub fn place(&self, name: &str) -> Place {
        Place {
            region: self.caller.region.clone(),
            account: self.caller.account.clone(),
            name: name.to_owned(),
        }
    }

    /// Refuses what the caller's key does not allow, for the queue that this call is about.
    pub fn check(&self, place: &Place) -> Result<()> {
        if let Some(watch) = self.watch {
            watch.queue(&place.name);
        }
        self.permit(place)
    }

    /// Refuses what the caller's key does not allow.
    pub fn permit(&self, place: &Place) -> Result<()> {
        let Some(key) = &self.caller.key else { return Ok(()) };
        if place.account == self.caller.account && key.may_use(&place.name) {
            return Ok(());
        }
        Err(denied(&key.id, self.action, &place.arn()))
    }

    /// The place of the queue that a URL names, or else the request's path.
    pub fn place_at(&self, url: Option<&str>) -> Result<(Place, String)> {
        let address = match url.filter(|url| !url.is_empty()) {
            Some(url) => Address::of_url(url)?,
            None => self.path.clone().ok_or_else(|| Failure::missing("QueueUrl"))?,
        };
        let account = address.account.unwrap_or_else(|| self.caller.account.clone());
        let place = Place { region: self.caller.region.clone(), account, name: address.name };
        self.check(&place)?;
        // What cannot be a name is not looked for.
        check_name(&place.name).map_err(|_| Failure::no_queue())?;
        Ok((place, address.client))
    }

    /// The queue that a URL names, or else the request's path.
    pub async fn queue_at(&self, url: Option<&str>) -> Result<(Arc<Known>, Client)> {
        let (place, client) = self.place_at(url)?;
        let known = self.inner.registry.get(&place).await?;
        let client = known.live.client(&client, known.settings.has_clients)?;
        Ok((known, client))
    }

    /// Tells who watches how many messages this is about.
    pub fn messages(&self, count: usize) {
        if let Some(watch) = self.watch {
            watch.messages(count);
        }
    }

    /// Tells who watches how long a part of it takes.
    pub async fn part<T>(&self, part: Part, work: impl Future<Output = T>) -> T {
        let Some(watch) = self.watch else { return work.await };
        watch.began(part);
        let done = work.await;
        watch.ended(part);
        done
    }

    pub fn url(&self, place: &Place) -> String {
        match self.base {
            Base::Given(base) => place.url(base),
            Base::Of(request) => place.url(&base_url(&self.inner.options, request)),
        }
    }
}

/// What is answered to who is known and may not.
pub fn denied(id: &str, action: Action, resource: &str) -> Failure {
    let action = action.name().to_lowercase();
    Failure::denied(format!(
        "User: {id} is not authorized to perform: sqs:{action} on resource: {resource} because no \
         identity-based policy allows the sqs:{action} action"
    ))
}

/// What queue URLs begin with: the address that the client used.
fn base_url(options: &SqsOptions, request: &Parts) -> String {
    if let Some(public) = &options.public_url {
        return public.trim_end_matches('/').to_owned();
    }
    let header = |name: &str| {
        let text = request.headers.get(name)?.to_str().ok()?;
        // Of several proxies, the first was the client's.
        let first = text.split(',').next().unwrap_or_default().trim();
        (!first.is_empty() && first.bytes().all(is_of_host)).then(|| first.to_owned())
    };
    let scheme = header("x-forwarded-proto")
        .or_else(|| request.uri.scheme_str().map(str::to_owned))
        .filter(|scheme| matches!(scheme.as_str(), "http" | "https"))
        .unwrap_or_else(|| "http".to_owned());
    let own = header("host").or_else(|| request.uri.authority().map(ToString::to_string));
    let forwarded = header("x-forwarded-host");
    let mut host = forwarded.or(own).unwrap_or_else(|| "localhost".to_owned());
    if let Some(port) = header("x-forwarded-port")
        && !has_port(&host)
        && !matches!((scheme.as_str(), port.as_str()), ("http", "80") | ("https", "443"))
    {
        host = format!("{host}:{port}");
    }
    format!("{scheme}://{host}")
}

/// Whether a byte can be part of an address: what else a client says there is not repeated to others.
const fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(headers: &[(&str, &str)], options: &SqsOptions) -> String {
        let mut request = http::Request::builder().uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        base_url(options, &request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn urls_begin_with_the_address_that_the_client_used() {
        let options = SqsOptions::default();
        assert_eq!(base(&[("host", "queue.test:9324")], &options), "http://queue.test:9324");
        assert_eq!(base(&[("host", "[::1]:9324")], &options), "http://[::1]:9324");
        let proxied = [
            ("host", "inside:1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "outside.test, inside"),
            ("x-forwarded-port", "8443"),
        ];
        assert_eq!(base(&proxied, &options), "https://outside.test:8443");
        assert_eq!(base(&[("host", "a<b>")], &options), "http://localhost");
        let public = SqsOptions { public_url: Some("https://q.test/".into()), ..options };
        assert_eq!(base(&proxied, &public), "https://q.test");
    }
}

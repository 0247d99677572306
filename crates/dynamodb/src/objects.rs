//! Where large payload ("cargo") may be kept besides the table: an object store named by a URL.

use std::path::Path as FilePath;
use std::sync::Arc;

use millpond_store::{Result, StoreError};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore};
use url::{Host, Url};

use crate::config::Credentials;

/// The forms that a URL may have.
const FORMS: &str = "s3://bucket/prefix, file:///directory or memory:";

/// An object store and the place in it where everything goes.
#[derive(Clone, Debug)]
pub struct Objects {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// What every object's path begins with.
    pub prefix: Path,
}

/// What may be said about a bucket. What is not given is taken from the environment (`AWS_REGION`,
/// `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID` and their like), or from the machine's or container's role.
#[derive(Clone, Debug, Default)]
pub struct ObjectOptions {
    /// The service's address, for a service that speaks S3's protocol.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// Who asks.
    pub credentials: Option<Credentials>,
    /// Whether an endpoint elsewhere may be spoken to without TLS. One on this machine may in any case.
    pub allow_http: bool,
}

impl Objects {
    /// Opens `s3://bucket/prefix`, `file:///directory` (made when it is missing) or `memory:` (gone with the
    /// process). Only the file system is touched, not the network.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when the URL is of another form, the directory cannot be written to, or the
    /// bucket's region is unknown.
    pub fn open(url: &str, options: &ObjectOptions) -> Result<Self> {
        let parsed = Url::parse(url).map_err(|error| wrong_url(url, &error.to_string()))?;
        match parsed.scheme() {
            "s3" => open_bucket(&parsed, options),
            "file" => open_directory(&parsed),
            "memory" => {
                let prefix = parse_prefix(&parsed)?;
                Ok(Self { store: Arc::new(InMemory::new()), prefix })
            }
            other => Err(wrong_url(url, &format!("the scheme {other:?} is not known"))),
        }
    }
}

fn open_bucket(url: &Url, options: &ObjectOptions) -> Result<Objects> {
    let bucket = url.host_str().filter(|host| !host.is_empty());
    let bucket = bucket.ok_or_else(|| wrong_url(url.as_str(), "it names no bucket"))?;
    use_ring();
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(given) = &options.credentials {
        builder = builder
            .with_access_key_id(&given.access_key_id)
            .with_secret_access_key(&given.secret_access_key);
        if let Some(token) = &given.session_token {
            builder = builder.with_token(token);
        }
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    if endpoint.is_none() && builder.get_config_value(&AmazonS3ConfigKey::Region).is_none() {
        return Err(StoreError::misconfigured(
            format!("no region is known for bucket {bucket}"),
            "set AWS_REGION, or pass a region in the configuration",
        ));
    }
    let in_the_clear = endpoint.as_deref().filter(|endpoint| endpoint.starts_with("http:"));
    if let Some(endpoint) = in_the_clear {
        let said = builder.get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
        if !(options.allow_http || is_loopback(endpoint) || said.as_deref() == Some("true")) {
            return Err(StoreError::misconfigured(
                format!(
                    "the endpoint {endpoint} of bucket {bucket} would be spoken to without TLS"
                ),
                "use an https endpoint, or allow http in the configuration",
            ));
        }
        builder = builder.with_allow_http(true);
    }
    let store = builder.build().map_err(|error| {
        StoreError::misconfigured(
            format!("bucket {bucket} cannot be opened: {error}"),
            "check its name, the region, the endpoint and the credentials",
        )
    })?;
    Ok(Objects { store: Arc::new(store), prefix: parse_prefix(url)? })
}

/// The bucket's HTTPS client takes the process's TLS provider. Ring is what the table's client uses too. Where a
/// program has installed another before, that one stays.
fn use_ring() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn is_loopback(endpoint: &str) -> bool {
    let Ok(url) = Url::parse(endpoint) else {
        return false;
    };
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn open_directory(url: &Url) -> Result<Objects> {
    let no_path = || wrong_url(url.as_str(), "it names no directory of this machine");
    let directory = url.to_file_path().map_err(|()| no_path())?;
    let store = writable(&directory).map_err(|error| {
        StoreError::misconfigured(
            format!("directory {} cannot be used: {error}", directory.display()),
            "name a directory that may be written to, or grant the permission",
        )
    })?;
    Ok(Objects { store: Arc::new(store), prefix: Path::default() })
}

/// Opens a directory after trying it out, so that a mistake shows now and not at the first large payload.
fn writable(directory: &FilePath) -> Result<LocalFileSystem, Box<dyn std::error::Error>> {
    std::fs::create_dir_all(directory)?;
    let probe = directory.join(format!(".millpond-probe-{}", std::process::id()));
    std::fs::write(&probe, b"")?;
    std::fs::remove_file(&probe)?;
    // What is acknowledged must be on the disk.
    Ok(LocalFileSystem::new_with_prefix(directory)?.with_fsync(true))
}

fn parse_prefix(url: &Url) -> Result<Path> {
    Path::from_url_path(url.path()).map_err(|error| wrong_url(url.as_str(), &error.to_string()))
}

fn wrong_url(url: &str, problem: &str) -> StoreError {
    StoreError::misconfigured(
        format!("{url:?} does not name an object store: {problem}"),
        format!("use {FORMS}"),
    )
}

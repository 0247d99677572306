//! Opening object stores by URL.

use millpond_dynamodb::{Credentials, ObjectOptions, Objects};
use millpond_store::StoreError;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

fn options(endpoint: &str) -> ObjectOptions {
    ObjectOptions {
        endpoint: Some(endpoint.to_owned()),
        region: Some("eu-central-1".to_owned()),
        credentials: Some(Credentials {
            access_key_id: "test".to_owned(),
            secret_access_key: "test".to_owned(),
            session_token: None,
        }),
        allow_http: false,
    }
}

fn refused(url: &str, options: &ObjectOptions) -> String {
    match Objects::open(url, options) {
        Err(error @ StoreError::Misconfigured { .. }) => error.to_string(),
        other => panic!("{url} was not refused: {other:?}"),
    }
}

async fn round_trip(objects: &Objects) {
    let path = Path::from(format!("{}/some/object", objects.prefix));
    objects.store.put(&path, vec![1, 2, 3].into()).await.unwrap();
    let read = objects.store.get(&path).await.unwrap().bytes().await.unwrap();
    assert_eq!(read.as_ref(), [1, 2, 3]);
}

#[tokio::test]
async fn memory_and_files_keep_objects() {
    round_trip(&Objects::open("memory:", &ObjectOptions::default()).unwrap()).await;
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("not/yet there");
    let url = format!("file://{}", deep.display()).replace(' ', "%20");
    let objects = Objects::open(&url, &ObjectOptions::default()).unwrap();
    round_trip(&objects).await;
    assert!(deep.join("some/object").exists(), "the directory is made and used");
    assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 1, "the probe was left behind");
}

#[test]
fn a_directory_that_cannot_be_used_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let url = format!("file://{}/below", file.display());
    let error = refused(&url, &ObjectOptions::default());
    assert!(error.contains("file/below cannot be used"), "{error}");
}

#[test]
fn other_urls_are_refused_with_the_forms_accepted() {
    for url in ["gs://bucket/x", "bucket", "https://example.com/x", "s3:///x", "file://host/x"] {
        let error = refused(url, &options("http://127.0.0.1:1"));
        assert!(error.contains(url), "{error}");
        assert!(error.contains("s3://bucket/prefix, file:///directory or memory:"), "{error}");
    }
}

#[tokio::test]
async fn buckets_are_spoken_to_in_the_clear_on_this_machine_only() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let objects = Objects::open("s3://bucket/deep/prefix", &options(&endpoint)).unwrap();
    assert_eq!(objects.prefix.as_ref(), "deep/prefix");
    let asked = tokio::spawn(async move {
        use tokio::io::AsyncReadExt as _;
        let (mut client, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4_096];
        let length = client.read(&mut head).await.unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    let path = Path::from("deep/prefix/object");
    let reading = tokio::spawn(async move { objects.store.get(&path).await.map(|_| ()) });
    let head = asked.await.unwrap();
    assert!(head.starts_with("GET /bucket/deep/prefix/object "), "{head}");
    assert!(head.contains("AWS4-HMAC-SHA256 Credential=test/"), "{head}");
    reading.abort();

    let elsewhere = options("http://objects.example.com");
    let error = refused("s3://bucket", &elsewhere);
    assert!(error.contains("without TLS"), "{error}");
    Objects::open("s3://bucket", &ObjectOptions { allow_http: true, ..elsewhere }).unwrap();
    Objects::open("s3://bucket", &options("https://objects.example.com")).unwrap();
}

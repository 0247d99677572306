//! An S3 server within the test process.

use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use millpond_dynamodb::{Credentials, ObjectOptions, Objects};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;

/// Serves the buckets in `directory` until the test's runtime ends.
pub async fn serve(directory: &std::path::Path) -> SocketAddr {
    let mut service = S3ServiceBuilder::new(FileSystem::new(directory).unwrap());
    service.set_auth(SimpleAuth::from_single("test", "test-secret"));
    let service = service.build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let server = Builder::new(TokioExecutor::new());
                // A client that hangs up ends its connection, and nothing else.
                let _ = server.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    address
}

/// The bucket `cargo`, opened with this secret.
pub fn open(address: SocketAddr, secret: &str) -> Objects {
    let options = ObjectOptions {
        endpoint: Some(format!("http://{address}")),
        region: Some("eu-central-1".to_owned()),
        credentials: Some(Credentials {
            access_key_id: "test".to_owned(),
            secret_access_key: secret.to_owned(),
            session_token: None,
        }),
        allow_http: false,
    };
    Objects::open("s3://cargo/deep", &options).unwrap()
}

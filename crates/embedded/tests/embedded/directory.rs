//! Who may open a directory, and what is said when not.

use std::fs;
use std::path::Path;

use crate::common::{numbers, open, put, refusal};
use millpond_store::{Result, Store, StoreError};
use tempfile::{TempDir, tempdir};

/// A store with one item.
async fn one_item() -> (TempDir, std::path::PathBuf) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).await.unwrap();
    store.write(put("p", 1)).await.unwrap();
    store.close().await;
    (directory, path)
}

async fn misconfigured(path: &Path) -> String {
    match refusal(open(path).await) {
        StoreError::Misconfigured { problem, .. } => problem,
        other => panic!("expected a wrong set-up, got {other:?}"),
    }
}

async fn damage(path: &Path) -> String {
    match refusal(open(path).await) {
        error @ StoreError::Corrupt { .. } => error.to_string(),
        other => panic!("expected damage, got {other:?}"),
    }
}

fn rewrite_header(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path.join("header")).unwrap();
    let lines = text.rsplit_once("checksum").unwrap().0.replace(from, to);
    let sum = crc32fast::hash(lines.as_bytes());
    fs::write(path.join("header"), format!("{lines}checksum {sum:08x}\n")).unwrap();
}

#[tokio::test]
async fn a_store_is_open_once_at_a_time() {
    let (_kept, path) = one_item().await;
    let first = open(&path).await.unwrap();
    let problem = misconfigured(&path).await;
    assert!(problem.contains(path.to_str().unwrap()), "{problem}");
    assert!(problem.contains("open already"), "{problem}");
    first.close().await;
    let second = open(&path).await.unwrap();
    assert_eq!(numbers(&second, "p").await.unwrap(), [1]);
}

#[tokio::test]
async fn a_dropped_store_frees_its_directory() {
    let (_kept, path) = one_item().await;
    for _ in 0..3 {
        let store = open(&path).await.unwrap();
        let clone = store.clone();
        drop(store);
        assert_eq!(numbers(&clone, "p").await.unwrap(), [1]);
    }
}

#[tokio::test]
async fn a_newer_format_and_another_engine_are_refused() {
    let (_kept, path) = one_item().await;
    rewrite_header(&path, "format 2", "format 3");
    let problem = misconfigured(&path).await;
    assert!(problem.contains("has format 3") && problem.contains("up to 2"), "{problem}");
    rewrite_header(&path, "format 3", "format 1");
    let problem = misconfigured(&path).await;
    assert!(problem.contains("has format 1"), "{problem}");
    rewrite_header(&path, "format 1", "format 2");
    rewrite_header(&path, "fjall 3", "abacus 1");
    assert!(misconfigured(&path).await.contains("abacus 1"));
    rewrite_header(&path, "abacus 1", "fjall 3");
    open(&path).await.unwrap();
}

#[tokio::test]
async fn foreign_directories_and_files_are_refused_and_left_alone() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("letter.txt"), "dear").unwrap();
    let problem = misconfigured(directory.path()).await;
    assert!(problem.contains("letter.txt"), "{problem}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "something was written");

    let file = directory.path().join("letter.txt");
    let problem = misconfigured(&file).await;
    assert!(problem.contains(file.to_str().unwrap()), "{problem}");
    let below = file.join("store");
    assert!(misconfigured(&below).await.contains(below.to_str().unwrap()));
}

#[tokio::test]
async fn missing_files_are_noticed() {
    let (_kept, path) = one_item().await;
    for name in ["header", "acked", "engine"] {
        let away = path.with_extension("away");
        fs::rename(path.join(name), &away).unwrap();
        let error = damage(&path).await;
        assert!(error.contains(path.join(name).to_str().unwrap()), "{error}");
        assert!(error.contains("restore"), "{error}");
        fs::rename(&away, path.join(name)).unwrap();
    }
    let store = open(&path).await.unwrap();
    assert_eq!(numbers(&store, "p").await.unwrap(), [1]);
}

#[tokio::test]
async fn a_creation_that_was_cut_off_is_made_again() -> Result<()> {
    let (_kept, path) = one_item().await;
    let cut_off = path.with_extension("cut");
    fs::create_dir(&cut_off).unwrap();
    for name in ["lock", "header"] {
        fs::copy(path.join(name), cut_off.join(name)).unwrap();
    }
    fs::create_dir(cut_off.join("engine.new")).unwrap();
    fs::write(cut_off.join("engine.new/0.jnl"), "half a journal").unwrap();
    let store = open(&cut_off).await?;
    store.write(put("p", 7)).await?;
    assert_eq!(numbers(&store, "p").await?, [7]);
    Ok(())
}

#[tokio::test]
async fn a_lost_tail_of_the_journal_is_noticed() {
    let (_kept, path) = one_item().await;
    let store = open(&path).await.unwrap();
    let journal = path.join("engine/0.jnl");
    let before = fs::read(&journal).unwrap();
    store.write(put("p", 2)).await.unwrap();
    store.close().await;
    fs::write(&journal, before).unwrap();
    let error = damage(&path).await;
    assert!(error.contains("was acknowledged"), "{error}");
    assert!(error.contains(path.join("engine").to_str().unwrap()), "{error}");
    // The refusal stays: what the engine cut off does not make the store whole.
    assert!(damage(&path).await.contains("was acknowledged"));
}

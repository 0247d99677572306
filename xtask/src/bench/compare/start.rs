//! How each server is started: at full durability where it has a choice, otherwise as it comes.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::loads::Clients;
use super::packages::{debian, go, maven, succeed, unpacked};
use super::running::{Running, free_port};
use crate::moto::install as install_moto;
use crate::workspace::Workspace;

const ELASTICMQ: &str = "1.7.1";

/// 2.10 was the first that can flush before it answers; Debian has 2.9.
const NATS: &str = "github.com/nats-io/nats-server/v2@v2.12.1";

/// PostgreSQL does not run as root: this user is on every system, and has nothing.
const NOBODY: u32 = 65_534;

/// Where servers are started.
pub(super) struct Site<'a> {
    workspace: &'a Workspace,
}

impl<'a> Site<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Result<Self> {
        fs::create_dir_all(workspace.path("target/compare"))?;
        Ok(Self { workspace })
    }

    fn server(&self, name: &str) -> Result<(Running, String)> {
        let port = free_port()?;
        Ok((Running::new(self.workspace, name, port)?, port.to_string()))
    }
}

pub(super) fn millpond(site: &Site<'_>, clients: &Clients<'_>) -> Result<Running> {
    let (mut running, _) = site.server("millpond")?;
    let mut command = site.workspace.command(clients.millpond());
    command.args(["serve", "--log-level", "warn", "--listen", &running.address.to_string()]);
    command.arg("--store").arg(running.directory());
    running.spawn(&mut command)?;
    running.wait("")
}

pub(super) fn elasticmq(site: &Site<'_>, _: &Clients<'_>) -> Result<Running> {
    elasticmq_with(site, "elasticmq", |_| String::new())
}

pub(super) fn elasticmq_h2(site: &Site<'_>, _: &Clients<'_>) -> Result<Running> {
    elasticmq_with(site, "elasticmq-h2", |directory| {
        let uri = format!("jdbc:h2:{}", directory.join("messages").display());
        format!(
            "messages-storage {{ enabled = true, driver-class = \"org.h2.Driver\", uri = \"{uri}\" }}\n"
        )
    })
}

fn elasticmq_with(
    site: &Site<'_>,
    name: &str,
    storage: impl Fn(&Path) -> String,
) -> Result<Running> {
    let jars = maven(site.workspace, "org.elasticmq", "elasticmq-server_2.13", ELASTICMQ)?;
    let (mut running, port) = site.server(name)?;
    let config = running.directory().join("elasticmq.conf");
    let text = format!(
        "include classpath(\"application.conf\")\n\
         node-address {{ protocol = http, host = \"127.0.0.1\", port = {port}, context-path = \"\" }}\n\
         rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = \"127.0.0.1\" }}\n\
         rest-stats {{ enabled = false }}\n{}",
        storage(running.directory())
    );
    fs::write(&config, text)?;
    let mut command = site.workspace.command("java");
    command.arg(format!("-Dconfig.file={}", config.display()));
    command.arg("-cp").arg(jars.join("*")).arg("org.elasticmq.server.Main");
    running.spawn(&mut command)?;
    running.wait("")
}

pub(super) fn moto(site: &Site<'_>, _: &Clients<'_>) -> Result<Running> {
    let server = install_moto(site.workspace)?;
    let (mut running, port) = site.server("moto")?;
    running.spawn(site.workspace.command(server).args(["-H", "127.0.0.1", "-p", &port]))?;
    running.wait("")
}

pub(super) fn nats(site: &Site<'_>, _: &Clients<'_>) -> Result<Running> {
    let program = go(site.workspace, "nats-server", NATS)?.join("nats-server");
    let (mut running, port) = site.server("nats")?;
    let config = running.directory().join("nats.conf");
    let text = format!(
        "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
        running.directory().display()
    );
    fs::write(&config, text)?;
    running.spawn(site.workspace.command(program).arg("--config").arg(&config))?;
    running.wait("")
}

pub(super) fn redis(site: &Site<'_>, _: &Clients<'_>) -> Result<Running> {
    let root = debian(site.workspace, "redis-server")?;
    let (mut running, port) = site.server("redis")?;
    let mut command = unpacked(site.workspace, &root, &root.join("usr/bin/redis-server"));
    command.args(["--bind", "127.0.0.1", "--port", &port, "--save", ""]);
    command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]);
    command.arg(running.directory());
    running.spawn(&mut command)?;
    running.wait("")
}

pub(super) fn beanstalkd(site: &Site<'_>, _: &Clients<'_>) -> Result<Running> {
    let root = debian(site.workspace, "beanstalkd")?;
    let (mut running, port) = site.server("beanstalkd")?;
    let mut command = unpacked(site.workspace, &root, &root.join("usr/bin/beanstalkd"));
    command.args(["-l", "127.0.0.1", "-p", &port, "-f", "0", "-b"]).arg(running.directory());
    running.spawn(&mut command)?;
    running.wait("")
}

pub(super) fn postgres(site: &Site<'_>, _: &Clients<'_>) -> Result<Running> {
    let root = debian(site.workspace, "postgresql")?;
    let programs = only(&root.join("usr/lib/postgresql"))?.join("bin");
    let program = |name: &str| {
        let mut command = unpacked(site.workspace, &root, &programs.join(name));
        command.env("LC_ALL", "C");
        command
    };
    let (mut running, port) = site.server("postgres")?;
    let data = running.directory().join("data");
    fs::create_dir(&data)?;
    let mut make = program("initdb");
    make.args(["--username", "bench", "--auth", "trust", "--encoding", "UTF8", "--no-sync"]);
    make.arg("--pgdata").arg(&data);
    succeed(as_nobody(&mut make, &data)?).context("a new database")?;
    let mut server = program("postgres");
    server.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &port]);
    for setting in [
        "unix_socket_directories=",
        "fsync=on",
        "synchronous_commit=on",
        "shared_buffers=512MB",
        "max_wal_size=4GB",
        "max_connections=200",
        "jit=off",
    ] {
        server.args(["-c", setting]);
    }
    running.spawn(as_nobody(&mut server, &data)?)?;
    running.wait("ready to accept connections")
}

/// When this runs as root, the command runs as nobody, who owns the directory.
fn as_nobody<'a>(command: &'a mut Command, directory: &Path) -> Result<&'a mut Command> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(command);
    }
    chown(directory, Some(NOBODY), Some(NOBODY))?;
    Ok(command.uid(NOBODY).gid(NOBODY))
}

pub(super) fn rabbitmq(site: &Site<'_>, _: &Clients<'_>) -> Result<Running> {
    let root = debian(site.workspace, "rabbitmq-server")?;
    let home = only(&root.join("usr/lib/rabbitmq/lib"))?;
    let (mut running, port) = site.server("rabbitmq")?;
    let (names_port, peers_port) = (free_port()?.to_string(), free_port()?.to_string());
    let data = running.directory().to_owned();
    let file = |name: &str| data.join(name);
    let erlang = root.join("usr/lib/erlang");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = if erlang.is_dir() {
        write_erl(&erlang, &file("bin"))?;
        format!("{}:{}:{path}", file("bin").display(), erlang.join("bin").display())
    } else {
        // A system that has Erlang does not get it again.
        path
    };
    let program = |file: &Path| {
        let mut command = unpacked(site.workspace, &root, file);
        command.env("HOME", &data).env("PATH", &path);
        command.env("ERL_EPMD_ADDRESS", "127.0.0.1").env("ERL_EPMD_PORT", &names_port);
        command
    };
    // Started here, since the server would leave its own behind when it ends.
    running.spawn(program(Path::new("sh")).args(["-c", "exec epmd"]))?;
    fs::write(file("env.conf"), "")?;
    fs::write(file("rabbitmq.conf"), "log.console.level = warning\n")?;
    fs::write(file("plugins"), "[].\n")?;
    let mut server = program(&home.join("sbin/rabbitmq-server"));
    server
        .env("RABBITMQ_CONF_ENV_FILE", file("env.conf"))
        .env("RABBITMQ_CONFIG_FILE", file("rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", file("plugins"))
        .env("RABBITMQ_MNESIA_BASE", file("data"))
        .env("RABBITMQ_LOG_BASE", file("log"))
        .env("RABBITMQ_LOGS", "-")
        .env("RABBITMQ_NODENAME", "bench@localhost")
        .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODE_PORT", &port)
        .env("RABBITMQ_DIST_PORT", peers_port)
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
        );
    running.spawn(&mut server)?;
    running.wait("")
}

/// Debian's own script knows no place but the one that it is installed to.
fn write_erl(erlang: &Path, into: &Path) -> Result<()> {
    let entries = fs::read_dir(erlang)?.filter_map(|entry| Some(entry.ok()?.path()));
    let machine = entries
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("erts-"))
        })
        .last()
        .context("no erts in Erlang")?;
    fs::create_dir(into)?;
    let text = format!(
        "#!/bin/sh\nROOTDIR='{}' BINDIR='{}' EMU=beam PROGNAME=erl\n\
         export ROOTDIR BINDIR EMU PROGNAME\nexec \"$BINDIR/erlexec\" \"$@\"\n",
        erlang.display(),
        machine.join("bin").display()
    );
    let script = into.join("erl");
    fs::write(&script, text)?;
    Ok(fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?)
}

/// The one thing in a directory that is named after a version.
fn only(directory: &Path) -> Result<PathBuf> {
    let first = fs::read_dir(directory).ok().and_then(|mut entries| entries.next()?.ok());
    first.map(|entry| entry.path()).with_context(|| format!("nothing in {}", directory.display()))
}

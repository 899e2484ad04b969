//! What a command in a sandbox cannot do. Every attempt succeeds without the sandbox, or it would
//! prove nothing, and only targets what the test itself has created.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ikigai_tools::{Reach, SandboxKind};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::geteuid;
use serde_json::json;

use crate::support::sandboxed::{
    Isolation, REACHED, SandboxFixture, content, in_each_sandbox, in_sandbox, open, python,
};
use crate::support::skip;

#[test]
fn nothing_outside_the_tree_is_written() {
    in_each_sandbox(|fixture| {
        let outside = fixture.root().join("outside");
        let outside = outside.display();
        for attempt in [
            format!("echo new > {outside}/file"),
            "echo new > ../outside/file".to_owned(),
            format!("ln -sf {outside}/file link; echo new > link"),
            format!("ln -sfn {outside} folder; echo new > folder/other"),
            format!("echo new > /proc/self/root{outside}/file"),
            format!("echo new > /proc/$$/root{outside}/file"),
            format!("cd {outside}; echo new > file"),
            format!("mkdir {outside}/made"),
            format!("echo a > own; mv own {outside}/moved"),
            format!("mv {outside}/other kept && test ! -e {outside}/other"),
            format!("truncate -s 0 {outside}/file"),
            format!("ln {outside}/file hard && echo new > hard"),
            format!("rm {outside}/file"),
        ] {
            fixture.refuses(&format!("{attempt} && echo {REACHED}"));
        }
    });
}

/// Few users may inspect a machine's first process, so there is nothing to compare with.
#[test]
fn the_first_process_is_no_way_out() {
    in_each_sandbox(|fixture| {
        let root = fixture.root();
        for pid in ["1", "2", "$PPID", "$$"] {
            let place = format!("/proc/{pid}/root{}", root.display());
            for attempt in [
                format!("echo new > {place}/outside/file"),
                format!("cat {place}/home/.ssh/id"),
                format!("ls {place}/home/.ssh | grep id"),
            ] {
                let attempt = format!("{attempt} && echo {REACHED}");
                assert!(
                    !fixture.try_to(&attempt, Isolation::Sandboxed),
                    "{}: {attempt}",
                    fixture.kind
                );
            }
        }
    });
}

#[test]
fn what_was_outside_is_as_it_was() {
    in_each_sandbox(|fixture| {
        for attempt in ["echo new > ../outside/file", "rm -rf ../outside ../home", "rm -rf / 2>&1"]
        {
            fixture.bash(&format!("{attempt} --no-preserve-root"), Isolation::Sandboxed);
        }
        assert_eq!(content(fixture.root().join("outside/file")), "old\n");
        assert_eq!(content(fixture.workspace.home().join(".ssh/id")), "SECRET\n");
    });
}

#[test]
fn hidden_places_are_not_read() {
    in_each_sandbox(|fixture| {
        let home = fixture.workspace.home();
        let home = home.display();
        for attempt in [
            format!("cat {home}/.ssh/id"),
            format!("ls {home}/.ssh | sed s/id/SECRET/"),
            format!("cat {home}/.netrc"),
            format!("cat {home}/data/ikigai/ikigai.db"),
            format!("ln -sfn {home} way; cat way/.ssh/id"),
            format!("cat /proc/self/root{home}/.ssh/id"),
            format!("cd {home}; cat .ssh/../.ssh/id"),
            format!("ln {home}/.ssh/id found && cat found"),
            format!("grep -r SECRET {home}/.ssh"),
        ] {
            fixture.refuses(&format!("{attempt} | grep -q SECRET && echo {REACHED}"));
        }
        assert_eq!(fixture.prints("cat ~/notes"), "open\n");
    });
}

/// Files next to them are read by builds.
#[test]
fn logins_histories_and_wallets_are_hidden_and_caches_are_not() {
    in_each_sandbox(|fixture| {
        for (secret, beside) in [
            (".claude.json", ".config/git/config"),
            (".config/Slack/Cookies", ".config/pip/pip.conf"),
            (".gradle/gradle.properties", ".gradle/caches/a.jar"),
            (".m2/settings-security.xml", ".m2/repository/a.jar"),
            (".config/pypoetry/auth.toml", ".config/pypoetry/config.toml"),
            (".local/share/uv/credentials/credentials.toml", ".local/share/uv/python/a"),
            (".mysql_history", ".gitconfig"),
            (".ethereum/keystore/a", ".cargo/registry/a"),
        ] {
            fixture.workspace.write(format!("../home/{secret}"), "SECRET\n");
            fixture.workspace.write(format!("../home/{beside}"), "open\n");
            fixture.refuses(&format!("grep -q SECRET ~/{secret} && echo {REACHED}"));
            assert_eq!(fixture.prints(&format!("cat ~/{beside}")), "open\n", "{beside}");
        }
    });
}

/// Rules are reused for the next command once nothing has changed for a moment.
#[test]
fn walls_are_those_of_the_moment_in_which_a_command_begins() {
    in_each_sandbox(|mut fixture| {
        // Other tests must not matter.
        fixture.sandbox.hidden.push(std::env::temp_dir());
        let home = fixture.workspace.home();
        let last_change = home.metadata().unwrap().modified().unwrap();
        while last_change.elapsed().unwrap_or_default() < Duration::from_millis(50) {
            std::thread::yield_now();
        }
        assert_eq!(fixture.prints("cat ~/notes"), "open\n");
        fixture.workspace.write("../home/later", "later\n").write("../home/.pypirc", "SECRET\n");
        fs::rename(fixture.root().join("outside"), home.join(".ssh/put-away")).unwrap();
        assert_eq!(fixture.prints("cat ~/later ~/notes"), "later\nopen\n", "{}", fixture.kind);
        for secret in ["~/.pypirc", "~/.ssh/put-away/file"] {
            fixture.refuses(&format!("grep -q . {secret} && echo {REACHED}"));
        }
    });
}

#[test]
fn a_read_setting_opens_a_hidden_place_and_a_write_setting_a_closed_one() {
    in_each_sandbox(|mut fixture| {
        fixture.sandbox.read.push(open(&fixture.workspace.home().join(".ssh")));
        fixture.sandbox.write.push(open(&fixture.root().join("outside")));
        assert_eq!(fixture.prints("cat ~/.ssh/id"), "SECRET\n");
        fixture.prints("echo new > ../outside/file");
        assert_eq!(content(fixture.root().join("outside/file")), "new\n");
        assert!(
            !fixture.try_to(&format!("echo x > ~/.ssh/id && echo {REACHED}"), Isolation::Sandboxed)
        );
    });
}

#[test]
fn a_mount_leads_nowhere() {
    in_each_sandbox(|fixture| {
        let outside = fixture.root().join("outside");
        let inner = format!(
            "mkdir -p m; mount --bind {} m && echo new > m/file && echo {REACHED}",
            outside.display()
        );
        if geteuid().is_root() {
            fixture.refuses(&format!("unshare --mount bash -c '{inner}'"));
        }
        let new_user = format!("unshare --user true && echo {REACHED}");
        if !geteuid().is_root() && !fixture.try_to(&new_user, Isolation::Unconfined) {
            return skip("only root can mount, so there is no attempt to compare with");
        }
        fixture.refuses(&format!("unshare --user --map-root-user --mount bash -c '{inner}'"));
        fixture.refuses(&new_user);
    });
}

/// They are only opened, so an attempt that succeeds changes nothing.
#[test]
fn the_kernels_settings_are_not_opened_for_writing() {
    if !geteuid().is_root() {
        return skip("only root may write them, so there is no attempt to compare with");
    }
    in_each_sandbox(|fixture| {
        for setting in ["sys/kernel/hostname", "sys/kernel/core_pattern", "sys/vm/swappiness"] {
            fixture.refuses(&format!("exec 3<>/proc/{setting} && echo {REACHED}"));
        }
        assert_eq!(fixture.prints("echo out > /dev/stdout; cat /proc/self/comm"), "out\ncat\n");
    });
}

#[test]
fn there_is_no_tcp() {
    in_each_sandbox(|fixture| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let port = server.local_addr().unwrap().port();
        let attempt = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo {REACHED}");
        assert!(!fixture.try_to(&attempt, Isolation::Sandboxed), "{}", fixture.kind);
        assert!(server.accept().is_err());
        assert!(fixture.try_to(&attempt, Isolation::Unconfined));
        assert!(server.accept().is_ok());
    });
}

#[test]
fn a_network_setting_opens_it() {
    in_each_sandbox(|mut fixture| {
        fixture.sandbox.network = true;
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        fixture.prints(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
        let abstract_socket = AbstractServer::new(&fixture);
        fixture.refuses(&abstract_socket.attempt());
    });
}

#[test]
fn a_call_that_is_permitted_the_network_has_it_and_stays_in_the_sandbox() {
    in_each_sandbox(|fixture| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let command = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port} && echo {REACHED} >&2; echo new > ../outside/file"
        );
        let context = fixture.context(Isolation::Sandboxed).reaching(Reach::Network);
        let result = fixture.call_in(&context, &json!({"command": command, "network": true}));
        let output = result["data"]["output"].as_str().unwrap();
        assert!(output.starts_with(REACHED), "{}: {output}", fixture.kind);
        assert_eq!(fixture.workspace.read_text("../outside/file"), "old\n", "{output}");
    });
}

/// A name server of the test, which answers any query.
#[test]
fn there_is_no_udp_and_no_dns() {
    in_each_sandbox(|fixture| {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((_, asker)) = server.recv_from(&mut question) {
                let _ = server.send_to(REACHED.as_bytes(), asker);
            }
        });
        fixture.refuses(&python(&format!(
            "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
s.sendto(b'\\0\\0\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\7example\\3org\\0\\0\\1\\0\\1', ('127.0.0.1', {port}))
print(s.recv(512))"
        )));
    });
}

#[test]
fn a_unix_socket_outside_the_tree_is_not_reached() {
    in_each_sandbox(|fixture| {
        let path = fixture.root().join("outside/service");
        let _server = UnixListener::bind(&path).unwrap();
        let stream = format!(
            "import socket
s = socket.socket(socket.AF_UNIX)
s.connect('{}')
print('{REACHED}')",
            path.display()
        );
        fixture.refuses(&python(&stream));
        fixture.refuses(&AbstractServer::new(&fixture).attempt());
    });
}

/// The system lists such a socket by a path that leads nowhere, or not at all, so nothing could cover it.
#[test]
fn a_unix_socket_that_the_system_lists_under_no_path_is_not_reached() {
    let serve = "import os, socket, sys
os.chdir(sys.argv[1])
s = socket.socket(socket.AF_UNIX)
s.bind('relative')
s.listen()
os.rename('relative', 'service')
print('ready', flush=True)
sys.stdin.read()";
    in_each_sandbox(|fixture| {
        let folder = fixture.root().join("outside");
        let in_another_network = ["unshare", "--user", "--map-current-user", "--net", "python3"];
        for program in [&in_another_network[4..], &in_another_network] {
            let mut server = Command::new(program[0]);
            server.args(&program[1..]).args(["-c", serve]).arg(&folder);
            server.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut server = server.spawn().unwrap();
            let mut ready = [0; 6];
            if server.stdout.as_mut().unwrap().read_exact(&mut ready).is_err() {
                skip("this system does not let the tests make a network");
                continue;
            }
            fixture.refuses(&python(&format!(
                "import socket
s = socket.socket(socket.AF_UNIX)
s.connect('{}')
print('{REACHED}')",
                folder.join("service").display()
            )));
            drop(server.stdin.take());
            server.wait().unwrap();
            fs::remove_file(folder.join("service")).unwrap();
        }
    });
}

/// With a pair of datagram sockets a command could send to any address.
#[test]
fn a_unix_datagram_outside_the_tree_is_not_sent() {
    in_each_sandbox(|fixture| {
        let path = fixture.root().join("outside/log");
        let _server = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        fixture.refuses(&python(&format!(
            "import socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.sendto(b'x', '{}')
print('{REACHED}')",
            path.display()
        )));
    });
}

#[test]
fn the_program_and_its_watchdog_are_not_killed() {
    in_each_sandbox(|fixture| {
        let watchdog = || fixture.bash("echo $PPID", Isolation::Unconfined);
        let before = watchdog();
        fixture.bash("kill -9 -1; kill -9 $PPID; kill -9 0", Isolation::Sandboxed);
        assert_eq!(watchdog(), before, "{}", fixture.kind);
    });
}

#[test]
fn a_setuid_program_has_no_effect() {
    in_each_sandbox(|fixture| {
        assert_eq!(fixture.prints("grep NoNewPrivs /proc/self/status"), "NoNewPrivs:\t1\n");
    });
    if !geteuid().is_root() {
        return skip("only root can make a setuid program of another user");
    }
    in_each_sandbox(|fixture| {
        let made = "cp $(which id) own-id && chown 65534 own-id && chmod 4755 own-id";
        fixture.bash(made, Isolation::Unconfined);
        fixture.refuses(&format!("test $(./own-id -u) = 65534 && echo {REACHED}"));
    });
}

#[test]
fn there_are_no_capabilities_and_no_disks() {
    in_each_sandbox(|fixture| {
        assert_eq!(fixture.prints("grep CapEff /proc/self/status"), "CapEff:\t0000000000000000\n");
        let disks = "for d in /dev/sd* /dev/vd* /dev/nvme* /dev/mem /dev/kmsg; do
            head -c1 $d && echo seen; done 2>/dev/null; true";
        assert_eq!(fixture.prints(disks), "");
    });
}

/// A library from the working tree would run in the watchdog and in `bwrap`, outside the sandbox.
#[test]
fn a_library_of_the_tree_is_loaded_by_nobody_but_the_command() {
    in_each_sandbox(|mut fixture| {
        let source = format!(
            r#"#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {{
    char name[999] = {{0}};
    readlink("/proc/self/exe", name, 998);
    FILE *list = fopen("{}", "a");
    fprintf(list, "%s\n", name);
    fclose(list);
}}"#,
            fixture.workspace.text("loaded")
        );
        fixture.workspace.write("own.c", &source);
        fixture.prints("cc -shared -fPIC -o own.so own.c 2>/dev/null");
        for isolation in [Isolation::Sandboxed, Isolation::Unconfined] {
            fixture.reopen_with("LD_PRELOAD", &fixture.workspace.text("own.so"));
            let ran = fixture.bash("echo ran", isolation);
            assert_eq!(ran["data"]["output"], "ran\n", "{}", fixture.kind);
            let loaded = content(fixture.workspace.path("loaded"));
            assert!(!loaded.is_empty(), "{isolation:?}");
            assert!(loaded.lines().all(|line| line.ends_with("/bash")), "{isolation:?}: {loaded}");
            fs::remove_file(fixture.workspace.path("loaded")).unwrap();
        }
    });
}

/// If the tree contains the secrets, one command could move them for the next.
#[test]
fn a_secret_in_the_tree_is_not_moved_out_of_hiding() {
    in_each_sandbox(|mut fixture| {
        if fixture.kind != SandboxKind::Bubblewrap {
            return;
        }
        fixture.sandbox.write.push(open(&fixture.workspace.home()));
        fixture.bash("cd ~; mv data moved; mv .ssh ssh; mv .netrc netrc", Isolation::Sandboxed);
        let found = fixture.prints("cd ~; touch ours; cat */*/ikigai.db ssh/* netrc; true");
        assert!(!found.contains("SECRET"), "{found}");
        assert_eq!(content(fixture.workspace.home().join(".ssh/id")), "SECRET\n");
        assert!(fixture.workspace.home().join("ours").exists());
    });
}

/// The parent process may have left a folder open, which would bypass all rules about paths.
#[test]
fn a_folder_that_was_left_open_is_closed() {
    in_each_sandbox(|mut fixture| {
        let folder = fs::File::open(fixture.root().join("outside")).unwrap();
        fcntl_setfd(&folder, FdFlags::empty()).unwrap();
        let number = folder.as_raw_fd();
        // The watchdog starts with it.
        fixture.reopen_with("X", "");
        let attempt = format!("echo new > /proc/self/fd/{number}/file && echo {REACHED}");
        assert!(
            ![Isolation::Sandboxed, Isolation::Unconfined]
                .iter()
                .any(|isolation| fixture.try_to(&attempt, *isolation))
        );
        let inherits = Command::new("bash").args(["-c", &attempt]).output().unwrap();
        assert!(String::from_utf8_lossy(&inherits.stdout).contains(REACHED), "no attempt");
        let open = "ls -l /proc/1/fd /proc/$PPID/fd 2>&1 | grep outside; true";
        assert_eq!(fixture.prints(open), "");
    });
}

/// A socket created in it later could not be covered.
#[test]
fn a_folder_for_sockets_that_was_made_after_the_last_command_is_hidden() {
    in_sandbox(SandboxKind::Bubblewrap, |mut fixture| {
        fixture.sandbox.unix_sockets = true;
        fixture.prints(":");
        let folder = tempfile::Builder::new().prefix("tmux-").tempdir_in("/tmp").unwrap();
        fs::write(folder.path().join("socket"), "").unwrap();
        assert_eq!(
            fixture.prints(&format!("ls -A {} 2>/dev/null; true", folder.path().display())),
            ""
        );
    });
}

/// A command that starts at the same moment would inherit what is open for `bwrap`.
#[test]
fn commands_that_begin_at_once_have_nothing_open_of_each_other() {
    in_each_sandbox(|fixture| {
        let open = |isolation| ("echo /proc/self/fd/*", isolation);
        let alone = [Isolation::Sandboxed, Isolation::Unconfined]
            .map(|isolation| fixture.print_at_once(&[open(isolation)]));
        let at_once = [open(Isolation::Sandboxed), open(Isolation::Unconfined)].repeat(30);
        for printed in fixture.print_at_once(&at_once) {
            assert!(alone.concat().contains(&printed), "{}: {printed}", fixture.kind);
        }
    });
}

struct AbstractServer {
    name: String,
    _listener: UnixListener,
}

impl AbstractServer {
    fn new(fixture: &SandboxFixture) -> AbstractServer {
        let name = fixture.root().display().to_string();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        AbstractServer { name, _listener: UnixListener::bind_addr(&address).unwrap() }
    }

    fn attempt(&self) -> String {
        let name = &self.name;
        python(&format!(
            "import socket
s = socket.socket(socket.AF_UNIX)
s.connect('\\0{name}')
print('{REACHED}')"
        ))
    }
}

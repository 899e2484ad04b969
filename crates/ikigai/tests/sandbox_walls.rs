//! What a command in a sandbox cannot do. Every attempt succeeds without the sandbox, or it would prove
//! nothing, and aims only at what the test itself has made.

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

use crate::support::enclosed::{
    Enclosed, REACHED, Walls, content, in_each_sandbox, in_sandbox, open, python,
};
use crate::support::skip;

#[test]
fn nothing_outside_the_tree_is_written() {
    in_each_sandbox(|enclosed| {
        let outside = enclosed.root().join("outside");
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
            enclosed.refuses(&format!("{attempt} && echo {REACHED}"));
        }
    });
}

/// Few may look into the first process of a machine, so there is nothing to compare with.
#[test]
fn the_first_process_is_no_way_out() {
    in_each_sandbox(|enclosed| {
        let root = enclosed.root();
        for pid in ["1", "2", "$PPID", "$$"] {
            let place = format!("/proc/{pid}/root{}", root.display());
            for attempt in [
                format!("echo new > {place}/outside/file"),
                format!("cat {place}/home/.ssh/id"),
                format!("ls {place}/home/.ssh | grep id"),
            ] {
                let attempt = format!("{attempt} && echo {REACHED}");
                assert!(!enclosed.try_to(&attempt, Walls::Up), "{}: {attempt}", enclosed.kind);
            }
        }
    });
}

#[test]
fn what_was_outside_is_as_it_was() {
    in_each_sandbox(|enclosed| {
        for attempt in ["echo new > ../outside/file", "rm -rf ../outside ../home", "rm -rf / 2>&1"]
        {
            enclosed.bash(&format!("{attempt} --no-preserve-root"), Walls::Up);
        }
        assert_eq!(content(enclosed.root().join("outside/file")), "old\n");
        assert_eq!(content(enclosed.workspace.home().join(".ssh/id")), "SECRET\n");
    });
}

#[test]
fn hidden_places_are_not_read() {
    in_each_sandbox(|enclosed| {
        let home = enclosed.workspace.home();
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
            enclosed.refuses(&format!("{attempt} | grep -q SECRET && echo {REACHED}"));
        }
        assert_eq!(enclosed.prints("cat ~/notes"), "open\n");
    });
}

/// Beside them lies what builds read.
#[test]
fn logins_histories_and_wallets_are_hidden_and_caches_are_not() {
    in_each_sandbox(|enclosed| {
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
            enclosed.workspace.write(format!("../home/{secret}"), "SECRET\n");
            enclosed.workspace.write(format!("../home/{beside}"), "open\n");
            enclosed.refuses(&format!("grep -q SECRET ~/{secret} && echo {REACHED}"));
            assert_eq!(enclosed.prints(&format!("cat ~/{beside}")), "open\n", "{beside}");
        }
    });
}

/// Rules are kept from one command to the next, once all has been at rest for a moment.
#[test]
fn walls_are_those_of_the_moment_in_which_a_command_begins() {
    in_each_sandbox(|mut enclosed| {
        // What other tests do there is not to matter.
        enclosed.sandbox.hidden.push(std::env::temp_dir());
        let home = enclosed.workspace.home();
        let last_change = home.metadata().unwrap().modified().unwrap();
        while last_change.elapsed().unwrap_or_default() < Duration::from_millis(50) {
            std::thread::yield_now();
        }
        assert_eq!(enclosed.prints("cat ~/notes"), "open\n");
        enclosed.workspace.write("../home/later", "later\n").write("../home/.pypirc", "SECRET\n");
        fs::rename(enclosed.root().join("outside"), home.join(".ssh/put-away")).unwrap();
        assert_eq!(enclosed.prints("cat ~/later ~/notes"), "later\nopen\n", "{}", enclosed.kind);
        for secret in ["~/.pypirc", "~/.ssh/put-away/file"] {
            enclosed.refuses(&format!("grep -q . {secret} && echo {REACHED}"));
        }
    });
}

#[test]
fn a_read_setting_opens_a_hidden_place_and_a_write_setting_a_closed_one() {
    in_each_sandbox(|mut enclosed| {
        enclosed.sandbox.read.push(open(&enclosed.workspace.home().join(".ssh")));
        enclosed.sandbox.write.push(open(&enclosed.root().join("outside")));
        assert_eq!(enclosed.prints("cat ~/.ssh/id"), "SECRET\n");
        enclosed.prints("echo new > ../outside/file");
        assert_eq!(content(enclosed.root().join("outside/file")), "new\n");
        assert!(!enclosed.try_to(&format!("echo x > ~/.ssh/id && echo {REACHED}"), Walls::Up));
    });
}

#[test]
fn a_mount_leads_nowhere() {
    in_each_sandbox(|enclosed| {
        let outside = enclosed.root().join("outside");
        let inner = format!(
            "mkdir -p m; mount --bind {} m && echo new > m/file && echo {REACHED}",
            outside.display()
        );
        if geteuid().is_root() {
            enclosed.refuses(&format!("unshare --mount bash -c '{inner}'"));
        }
        let new_user = format!("unshare --user true && echo {REACHED}");
        if !geteuid().is_root() && !enclosed.try_to(&new_user, Walls::Down) {
            return skip("only root can mount, so there is no attempt to compare with");
        }
        enclosed.refuses(&format!("unshare --user --map-root-user --mount bash -c '{inner}'"));
        enclosed.refuses(&new_user);
    });
}

/// They are only opened, so that an attempt that succeeds changes nothing.
#[test]
fn the_kernels_settings_are_not_opened_for_writing() {
    if !geteuid().is_root() {
        return skip("only root may write them, so there is no attempt to compare with");
    }
    in_each_sandbox(|enclosed| {
        for setting in ["sys/kernel/hostname", "sys/kernel/core_pattern", "sys/vm/swappiness"] {
            enclosed.refuses(&format!("exec 3<>/proc/{setting} && echo {REACHED}"));
        }
        assert_eq!(enclosed.prints("echo out > /dev/stdout; cat /proc/self/comm"), "out\ncat\n");
    });
}

#[test]
fn there_is_no_tcp() {
    in_each_sandbox(|enclosed| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let port = server.local_addr().unwrap().port();
        let attempt = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo {REACHED}");
        assert!(!enclosed.try_to(&attempt, Walls::Up), "{}", enclosed.kind);
        assert!(server.accept().is_err());
        assert!(enclosed.try_to(&attempt, Walls::Down));
        assert!(server.accept().is_ok());
    });
}

#[test]
fn a_network_setting_opens_it() {
    in_each_sandbox(|mut enclosed| {
        enclosed.sandbox.network = true;
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        enclosed.prints(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
        let abstract_socket = AbstractServer::new(&enclosed);
        enclosed.refuses(&abstract_socket.attempt());
    });
}

#[test]
fn a_call_that_is_permitted_the_network_has_it_and_stays_in_the_sandbox() {
    in_each_sandbox(|enclosed| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let command = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port} && echo {REACHED} >&2; echo new > ../outside/file"
        );
        let context = enclosed.context(Walls::Up).reaching(Reach::Network);
        let result = enclosed.call_in(&context, &json!({"command": command, "network": true}));
        let output = result["data"]["output"].as_str().unwrap();
        assert!(output.starts_with(REACHED), "{}: {output}", enclosed.kind);
        assert_eq!(enclosed.workspace.read_text("../outside/file"), "old\n", "{output}");
    });
}

/// A name server of the test's own, which answers whatever it is asked.
#[test]
fn there_is_no_udp_and_no_dns() {
    in_each_sandbox(|enclosed| {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((_, asker)) = server.recv_from(&mut question) {
                let _ = server.send_to(REACHED.as_bytes(), asker);
            }
        });
        enclosed.refuses(&python(&format!(
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
    in_each_sandbox(|enclosed| {
        let path = enclosed.root().join("outside/service");
        let _server = UnixListener::bind(&path).unwrap();
        let stream = format!(
            "import socket
s = socket.socket(socket.AF_UNIX)
s.connect('{}')
print('{REACHED}')",
            path.display()
        );
        enclosed.refuses(&python(&stream));
        enclosed.refuses(&AbstractServer::new(&enclosed).attempt());
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
    in_each_sandbox(|enclosed| {
        let folder = enclosed.root().join("outside");
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
            enclosed.refuses(&python(&format!(
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

/// A pair of datagram sockets would be a way to send to any address.
#[test]
fn a_unix_datagram_outside_the_tree_is_not_sent() {
    in_each_sandbox(|enclosed| {
        let path = enclosed.root().join("outside/log");
        let _server = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        enclosed.refuses(&python(&format!(
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
    in_each_sandbox(|enclosed| {
        let watchdog = || enclosed.bash("echo $PPID", Walls::Down);
        let before = watchdog();
        enclosed.bash("kill -9 -1; kill -9 $PPID; kill -9 0", Walls::Up);
        assert_eq!(watchdog(), before, "{}", enclosed.kind);
    });
}

#[test]
fn a_setuid_program_has_no_effect() {
    in_each_sandbox(|enclosed| {
        assert_eq!(enclosed.prints("grep NoNewPrivs /proc/self/status"), "NoNewPrivs:\t1\n");
    });
    if !geteuid().is_root() {
        return skip("only root can make a setuid program of another user");
    }
    in_each_sandbox(|enclosed| {
        let made = "cp $(which id) own-id && chown 65534 own-id && chmod 4755 own-id";
        enclosed.bash(made, Walls::Down);
        enclosed.refuses(&format!("test $(./own-id -u) = 65534 && echo {REACHED}"));
    });
}

#[test]
fn there_are_no_capabilities_and_no_disks() {
    in_each_sandbox(|enclosed| {
        assert_eq!(enclosed.prints("grep CapEff /proc/self/status"), "CapEff:\t0000000000000000\n");
        let disks = "for d in /dev/sd* /dev/vd* /dev/nvme* /dev/mem /dev/kmsg; do
            head -c1 $d && echo seen; done 2>/dev/null; true";
        assert_eq!(enclosed.prints(disks), "");
    });
}

/// A library of the working tree would be run in the watchdog and in `bwrap`, where there are no walls.
#[test]
fn a_library_of_the_tree_is_loaded_by_nobody_but_the_command() {
    in_each_sandbox(|mut enclosed| {
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
            enclosed.workspace.text("loaded")
        );
        enclosed.workspace.write("own.c", &source);
        enclosed.prints("cc -shared -fPIC -o own.so own.c 2>/dev/null");
        for walls in [Walls::Up, Walls::Down] {
            enclosed.reopen_with("LD_PRELOAD", &enclosed.workspace.text("own.so"));
            let ran = enclosed.bash("echo ran", walls);
            assert_eq!(ran["data"]["output"], "ran\n", "{}", enclosed.kind);
            let loaded = content(enclosed.workspace.path("loaded"));
            assert!(!loaded.is_empty(), "{walls:?}");
            assert!(loaded.lines().all(|line| line.ends_with("/bash")), "{walls:?}: {loaded}");
            fs::remove_file(enclosed.workspace.path("loaded")).unwrap();
        }
    });
}

/// Where the tree lies around the secrets, one command could move them for the next.
#[test]
fn a_secret_in_the_tree_is_not_moved_out_of_hiding() {
    in_each_sandbox(|mut enclosed| {
        if enclosed.kind != SandboxKind::Bubblewrap {
            return;
        }
        enclosed.sandbox.write.push(open(&enclosed.workspace.home()));
        enclosed.bash("cd ~; mv data moved; mv .ssh ssh; mv .netrc netrc", Walls::Up);
        let found = enclosed.prints("cd ~; touch ours; cat */*/ikigai.db ssh/* netrc; true");
        assert!(!found.contains("SECRET"), "{found}");
        assert_eq!(content(enclosed.workspace.home().join(".ssh/id")), "SECRET\n");
        assert!(enclosed.workspace.home().join("ours").exists());
    });
}

/// Whoever started the program may have left a folder open: a way around every wall that is about paths.
#[test]
fn a_folder_that_was_left_open_is_closed() {
    in_each_sandbox(|mut enclosed| {
        let folder = fs::File::open(enclosed.root().join("outside")).unwrap();
        fcntl_setfd(&folder, FdFlags::empty()).unwrap();
        let number = folder.as_raw_fd();
        // The watchdog is to begin with it.
        enclosed.reopen_with("X", "");
        let attempt = format!("echo new > /proc/self/fd/{number}/file && echo {REACHED}");
        assert!(![Walls::Up, Walls::Down].iter().any(|walls| enclosed.try_to(&attempt, *walls)));
        let inherits = Command::new("bash").args(["-c", &attempt]).output().unwrap();
        assert!(String::from_utf8_lossy(&inherits.stdout).contains(REACHED), "no attempt");
        let open = "ls -l /proc/1/fd /proc/$PPID/fd 2>&1 | grep outside; true";
        assert_eq!(enclosed.prints(open), "");
    });
}

/// A socket that comes up in it later could not be covered.
#[test]
fn a_folder_for_sockets_that_was_made_after_the_last_command_is_hidden() {
    in_sandbox(SandboxKind::Bubblewrap, |mut enclosed| {
        enclosed.sandbox.unix_sockets = true;
        enclosed.prints(":");
        let folder = tempfile::Builder::new().prefix("tmux-").tempdir_in("/tmp").unwrap();
        fs::write(folder.path().join("socket"), "").unwrap();
        assert_eq!(
            enclosed.prints(&format!("ls -A {} 2>/dev/null; true", folder.path().display())),
            ""
        );
    });
}

/// What is open for `bwrap` would be inherited by a command that begins at the same moment.
#[test]
fn commands_that_begin_at_once_have_nothing_open_of_each_other() {
    in_each_sandbox(|enclosed| {
        let open = |walls| ("echo /proc/self/fd/*", walls);
        let alone = [Walls::Up, Walls::Down].map(|walls| enclosed.print_at_once(&[open(walls)]));
        let at_once = [open(Walls::Up), open(Walls::Down)].repeat(30);
        for printed in enclosed.print_at_once(&at_once) {
            assert!(alone.concat().contains(&printed), "{}: {printed}", enclosed.kind);
        }
    });
}

struct AbstractServer {
    name: String,
    _listener: UnixListener,
}

impl AbstractServer {
    fn new(enclosed: &Enclosed) -> AbstractServer {
        let name = enclosed.root().display().to_string();
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

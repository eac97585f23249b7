//! Logins by PAM, where newsreel is built with it: the modules of a service are asked, through `login.program`.
//!
//! A service is a file of `/etc/pam.d`, so this is for root; for others it says so and is skipped.

use std::path::{Path, PathBuf};

use newsreel_host::process::{own_pid, own_uid};
use newsreel_host::{Disk as _, RealDisk, replace_file};

use crate::client::NewsClient;
use crate::lifecycle::wait_for;
use crate::spool::Spool;

/// A service with its file, which goes with it.
struct Service(PathBuf);

impl Service {
    fn new(modules: &str) -> Self {
        let path = Path::new("/etc/pam.d").join(format!("newsreel-it-{}", own_pid()));
        replace_file(&RealDisk, &path, modules.as_bytes()).unwrap();
        Self(path)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        RealDisk.remove(&self.0).unwrap();
    }
}

#[test]
fn whom_pam_knows_can_log_in() {
    if own_uid() != 0 || !RealDisk.exists(Path::new("/etc/pam.d")).unwrap() {
        println!("skipped: only root makes a service of PAM");
        return;
    }
    let spool = Spool::new();
    let script = spool.folder().join("check.sh");
    // It is told the password on its standard input, with a NUL behind it.
    let text = "#!/bin/sh\npassword=$(tr -d '\\0')\n[ \"$PAM_USER:$password@$PAM_RHOST\" = ada:secret-word@127.0.0.1 ]\n";
    replace_file(&RealDisk, &script, text.as_bytes()).unwrap();
    let service = Service::new(&format!(
        "auth sufficient pam_exec.so quiet expose_authtok /bin/sh {}\nauth required pam_deny.so\naccount required pam_permit.so\n",
        script.display()
    ));
    let name = service.0.file_name().unwrap().to_str().unwrap();
    let program = |service: &str| {
        let newsreel = env!("CARGO_BIN_EXE_newsreel");
        let access = "[[access]]\nname = \"users\"\nusers = [\"*\"]\nread = \"*\"\n";
        Spool::changed(&[])
            + &format!(
                "[login]\nfailures_max = 0\nprogram = \"{newsreel} pam --service {service}\"\n{access}"
            )
    };
    spool.configure(&program(name));
    let server = spool.serve();
    let log_in = |user: &str, password: &str| {
        let mut client = NewsClient::connect(server.address);
        client.ask(&format!("AUTHINFO USER {user}"));
        client.ask(&format!("AUTHINFO PASS {password}"))[..3].to_owned()
    };
    assert_eq!(log_in("ada", "secret-word"), "281");
    assert_eq!(log_in("ada", "other-word"), "481");
    assert_eq!(log_in("eve", "secret-word"), "481");
    // One that is no service, or not one that can be asked, lets nobody in and is no wrong password.
    drop(service);
    let broken =
        Service::new("auth required pam_no_such_module.so\naccount required pam_permit.so\n");
    assert_eq!(log_in("ada", "secret-word"), "403");
    wait_for(&spool, "login.program said: PAM cannot tell");
    drop(broken);
    server.stop();
}

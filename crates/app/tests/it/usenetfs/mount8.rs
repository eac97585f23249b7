//! mount(8), umount(8) and fstab: what they do with a mount of ours, by the helper that they find where it belongs.

use std::fs;
use std::process::Command;

use super::{Place, names, skipped};
use crate::scale::binary;
use crate::spool::said;

/// In a name space of its own the directory where mount(8) looks for helpers is one of links to all that is in it, and to ours.
const HELPER: &str = r#"
set -e
# What others have mounted meanwhile is theirs to take off.
up=$(dirname "$PWD")
sed 's/^[^ ]* \([^ ]*\) .*/\1/' /proc/self/mounts | grep -a -e "^$up/" -e '^/dev/shm/' | tac | while read -r at; do umount -l "$at" || true; done
sbin=$(realpath /sbin)
mkdir orig sbin
mount --bind "$sbin" orig
ln -s "$PWD"/orig/* sbin/
ln -sf "$0" sbin/mount.fuse.newsreel
mount --bind sbin "$sbin"
# Whoever mounts right after umount(8) may have to wait for the server of before.
again() { for i in $(seq 300); do if "$@" 2>why; then return; fi; grep -q 'in use by another mount' why || break; sleep 0.1; done; cat why; return 1; }
"#;

/// What mount(8) does with words, and with a line of fstab; what cannot be written is so for the kernel's reason.
const MOUNTS: &str = r#"
mount -t fuse.newsreel -o algorithm=yyy,noatime "$PWD/lower" "$PWD/mnt"
"$0" usenetfs status --json mnt | grep -o '"algorithm": "yyy"'
grep -a "$PWD/mnt " /proc/self/mounts | grep -a -o 'fuse.newsreel rw[^ ]*noatime'
mkdir mnt/group; chmod u+s mnt/group; echo text > mnt/group/12345
cat lower/group/234/12345
mount -t fuse.newsreel -o rubbish lower mnt 2>&1 | grep -o '"rubbish" is no option of this file system'
mount -o remount,ro mnt
ls mnt/group
umount mnt; ls mnt
printf '%s %s fuse.newsreel algorithm=range16,ro,nofail,x-systemd.automount 0 0\n' "$PWD/lower" "$PWD/mnt" > fstab
again mount -T fstab "$PWD/mnt"
"$0" usenetfs status --json mnt | grep -o '"algorithm": "range16"'
cat mnt/group/12345
(echo more > mnt/group/1) 2>&1 | grep -o 'Read-only file system'
mount -T fstab -o remount,rw mnt
echo more > mnt/group/1; ls mnt/group
umount "$PWD/mnt"; ls mnt
again mount -T fstab -a
# It is there already: nothing is done, and nothing is wrong.
mount -T fstab -a
grep -a -c "$PWD/mnt fuse.newsreel" /proc/self/mounts
umount mnt
ls mnt
"#;

#[test]
fn mount_8_and_fstab_find_the_helper() {
    let Some(place) = Place::new() else {
        return;
    };
    let mut command = Command::new("unshare");
    let command = command.args(["--mount", "--propagation", "private", "timeout", "120"]);
    let command = command.args(["sh", "-c", &format!("{HELPER}{MOUNTS}")]);
    let command = command.arg(binary()).current_dir(place.dir.path());
    let output = command.env("LC_ALL", "C").output().unwrap();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    if complained.contains("unshare failed") {
        return skipped("this machine makes no name spaces for mounts");
    }
    assert_eq!(
        said(output).unwrap(),
        "\"algorithm\": \"yyy\"\nfuse.newsreel rw,nosuid,nodev,noatime\ntext\n\
         \"rubbish\" is no option of this file system\n12345\n\
         \"algorithm\": \"range16\"\ntext\nRead-only file system\n1\n12345\n1\n",
        "{complained}"
    );
    // And nothing of it outside of that name space.
    assert!(names(&place.path("")).is_empty());
    let verified = place.json(&["verify", "--recursive", "@lower"]);
    assert_eq!(
        (&verified["entries"], &verified["findings"]),
        (&2.into(), &serde_json::json!([]))
    );
    let articles = fs::read_dir(place.lower("group")).unwrap();
    assert_eq!(articles.count(), 2);
}

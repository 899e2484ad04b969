//! The folders that agents of a session can write, recognized by later processes.
//!
//! A path alone is not reliable: anything that can write its parent folder
//! can replace the folder by another one, or by a link. So the folder that
//! was first found at a path is recorded with the session, and another one is
//! refused. Folders are only compared between processes of the same machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ikigai_conversation::SessionId;

use crate::error::StoreError;
use crate::files::{path_bytes, path_from};
use crate::process::Process;
use crate::sessions;
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;
use crate::writer::Scope;

/// A folder that agents can write, as a process has found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootFolder {
    /// Absolute.
    pub path: PathBuf,
    /// Its device; `None` on file systems that get another device with every mount.
    pub device: Option<u64>,
    /// Its inode; `None` on file systems that change it over time. Such a folder is not recorded.
    pub inode: Option<u64>,
}

impl Store {
    /// Refuses folders that differ from those that an earlier process of this machine found at the
    /// same paths, and records new paths.
    ///
    /// # Errors
    /// [`StoreError::RootReplaced`]. Then nothing is recorded.
    pub async fn keep_roots(
        &self,
        session: SessionId,
        process: Process,
        roots: Vec<RootFolder>,
    ) -> Result<(), StoreError> {
        let scope = Scope::Session(session);
        self.commit(scope, move |unit| keep(unit, session, &process, roots)).await
    }

    /// The same for a process that does not work in the folders: nothing is recorded.
    ///
    /// # Errors
    /// [`StoreError::RootReplaced`].
    pub async fn check_roots(
        &self,
        session: SessionId,
        process: Process,
        roots: Vec<RootFolder>,
    ) -> Result<(), StoreError> {
        // On the writer, like the next step of a short command, which then needs no reader.
        self.commit(Scope::Session(session), move |unit| {
            let known = KnownRoots::of(unit, session, &process)?;
            roots.iter().try_for_each(|root| known.require_same(root))
        })
        .await
    }

    /// The paths of the folders that processes of this machine have recorded.
    pub async fn root_paths(
        &self,
        session: SessionId,
        process: Process,
    ) -> Result<Vec<PathBuf>, StoreError> {
        self.read(move |unit| {
            Ok(KnownRoots::of(unit, session, &process)?.folders.into_keys().collect())
        })
        .await
    }
}

pub(crate) fn keep(
    unit: &Unit<'_>,
    session: SessionId,
    process: &Process,
    roots: Vec<RootFolder>,
) -> Result<(), StoreError> {
    let mut known = KnownRoots::of(unit, session, process)?;
    roots.iter().try_for_each(|root| known.require_same(root))?;
    roots.into_iter().try_for_each(|root| known.keep(unit, root))
}

/// The folders that earlier processes of one machine have recorded.
struct KnownRoots<'a> {
    session: SessionId,
    key: i64,
    process: &'a Process,
    folders: BTreeMap<PathBuf, KnownFolder>,
}

#[derive(PartialEq, Eq)]
struct KnownFolder {
    boot: String,
    device: Option<u64>,
    inode: u64,
}

impl<'a> KnownRoots<'a> {
    fn of(
        unit: &Unit<'_>,
        session: SessionId,
        process: &'a Process,
    ) -> Result<KnownRoots<'a>, StoreError> {
        let key = sessions::key_of(unit, &session)?;
        let sql = "SELECT path, boot, device, inode FROM roots
            WHERE session = ?1 AND machine = ?2 AND host = ?3";
        let rows = unit.rows(sql, params![key, process.machine, process.host], |row| {
            let device = row.get::<Option<i64>>(2)?.map(i64::cast_unsigned);
            let inode = row.get::<i64>(3)?.cast_unsigned();
            Ok((path_from(row.get(0)?), KnownFolder { boot: row.get(1)?, device, inode }))
        })?;
        Ok(KnownRoots { session, key, process, folders: rows.into_iter().collect() })
    }

    fn require_same(&self, root: &RootFolder) -> Result<(), StoreError> {
        let Some(known) = self.folders.get(&root.path) else { return Ok(()) };
        // Some systems have no boot id.
        let same_boot = !known.boot.is_empty() && known.boot == self.process.boot;
        if root.inode == Some(known.inode) && (!same_boot || root.device == known.device) {
            return Ok(());
        }
        Err(StoreError::RootReplaced { session: self.session, path: root.path.clone() })
    }

    /// Records a folder, or the current device of a known one.
    fn keep(&mut self, unit: &Unit<'_>, root: RootFolder) -> Result<(), StoreError> {
        let RootFolder { path, device, inode: Some(inode) } = root else { return Ok(()) };
        let Process { machine, host, boot, .. } = self.process;
        let found = KnownFolder { boot: boot.clone(), device, inode };
        if self.folders.get(&path) == Some(&found) {
            return Ok(());
        }
        let sql = format!(
            "INSERT INTO roots (session, machine, host, path, boot, device, inode)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                ON CONFLICT (session, machine, host, {}) DO UPDATE SET boot = ?5, device = ?6",
            unit.dialect().path_in_index()
        );
        let device = device.map(u64::cast_signed);
        let params =
            params![self.key, machine, host, path_bytes(&path), boot, device, inode.cast_signed()];
        unit.run_silently(&sql, params)?;
        self.folders.insert(path, found);
        Ok(())
    }
}

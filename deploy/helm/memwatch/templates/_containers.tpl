{{/* Parts of a pod, which injection, the DaemonSet and the kustomize components share. */}}

{{- define "memwatch.securityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* Environment of each exporter, in a sidecar or on a node. */}}
{{- define "memwatch.exporterEnv" -}}
- name: MEMWATCH_LISTEN
  value: {{ printf "0.0.0.0:%d" (int .Values.port) }}
- name: MEMWATCH_DATA_DIR
  value: /var/lib/memwatch
{{- with .Values.exporter.logLevel }}
- name: MEMWATCH_LOG_LEVEL
  value: {{ . }}
{{- end }}
{{- with .Values.exporter.autoCaptures }}
- name: MEMWATCH_AUTO_CAPTURES
  value: {{ quote . }}
{{- end }}
{{- with .Values.exporter.capturesKeep }}
- name: MEMWATCH_CAPTURES_KEEP
  value: {{ . }}
{{- end }}
{{- with .Values.exporter.compat }}
- name: MEMWATCH_COMPAT
  value: {{ quote . }}
{{- end }}
{{- with .Values.exporter.otlp.endpoint }}
- name: MEMWATCH_OTLP
  value: {{ . }}
{{- end }}
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: POD_NAMESPACE
  valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
- name: POD_UID
  valueFrom: { fieldRef: { fieldPath: metadata.uid } }
- name: NODE_NAME
  valueFrom: { fieldRef: { fieldPath: spec.nodeName } }
{{- with .Values.exporter.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Container that copies the agent and creates a token in the volume. Its users add resources. */}}
{{- define "memwatch.agentContainer" -}}
name: memwatch-agent
image: {{ include "memwatch.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [install-agent, /run/memwatch]
securityContext:
  {{- include "memwatch.securityContext" . | nindent 2 }}
volumeMounts:
  - { name: memwatch, mountPath: /run/memwatch }
{{- end }}

{{/* Container that copies the token from a Secret. The volume of the Secret is optional, because a
     missing Secret must not keep the pod from starting. */}}
{{- define "memwatch.tokenContainer" -}}
name: memwatch-token
image: {{ include "memwatch.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [node, -e]
args:
  - |-
    const fs = require('node:fs')
    const to = '/run/memwatch/token'
    if (fs.existsSync('/run/secrets/memwatch/token') && !fs.existsSync(to)) {
      fs.writeFileSync(to, fs.readFileSync('/run/secrets/memwatch/token'), { mode: 0o440 })
    }
securityContext:
  {{- include "memwatch.securityContext" . | nindent 2 }}
volumeMounts:
  - { name: memwatch, mountPath: /run/memwatch }
  - { name: memwatch-token, mountPath: /run/secrets/memwatch, readOnly: true }
{{- end }}

{{/* The sidecar has no probes: the readiness of a pod includes its sidecars, so a flood of the port
     would remove the pod from its Services. */}}
{{- define "memwatch.sidecarContainer" -}}
name: memwatch
image: {{ include "memwatch.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
restartPolicy: Always
args: [exporter]
env:
  {{- include "memwatch.exporterEnv" . | nindent 2 }}
  - name: MEMWATCH_SOCKET
    value: /run/memwatch/exporter.sock
  - name: MEMWATCH_TOKEN_FILE
    value: /run/memwatch/token
  # The container restarts an exporter that ends, so that the pod stays in its Services.
  - name: MEMWATCH_ON_FAILURE
    value: stay
  - name: MEMWATCH_DATA_MAX
    value: {{ .Values.sidecar.dataMax }}
  - name: MEMWATCH_CAPTURES_MAX
    value: {{ .Values.sidecar.capturesMax }}
ports:
  - { name: memwatch, containerPort: {{ int .Values.port }}, protocol: TCP }
securityContext:
  {{- include "memwatch.securityContext" . | nindent 2 }}
volumeMounts:
  - { name: memwatch, mountPath: /run/memwatch }
  - { name: memwatch-data, mountPath: /var/lib/memwatch }
{{- end }}

{{/* The init containers of a pod in their order, without resources. Argument: dict "context" $ "mode" sidecar|node */}}
{{- define "memwatch.initContainers" -}}
{{- if and (eq .mode "sidecar") .context.Values.token.existingSecret }}
- resources: agent
  container:
    {{- include "memwatch.tokenContainer" .context | nindent 4 }}
{{- end }}
- resources: agent
  container:
    {{- include "memwatch.agentContainer" .context | nindent 4 }}
{{- if eq .mode "sidecar" }}
- resources: sidecar
  container:
    {{- include "memwatch.sidecarContainer" .context | nindent 4 }}
{{- end }}
{{- end }}

{{- define "memwatch.volumes" -}}
- name: memwatch
  emptyDir: { sizeLimit: {{ .context.Values.sidecar.volumeSize }} }
{{- if eq .mode "sidecar" }}
- name: memwatch-data
  emptyDir: { sizeLimit: {{ .context.Values.sidecar.dataVolumeSize }} }
{{- with .context.Values.token }}
{{- if .existingSecret }}
- name: memwatch-token
  secret:
    secretName: {{ .existingSecret }}
    optional: true
    items: [{ key: {{ .key }}, path: token }]
{{- end }}
{{- end }}
{{- else }}
- name: memwatch-node
  hostPath: { path: {{ .context.Values.node.socketDir }}, type: DirectoryOrCreate }
{{- end }}
{{- end }}

{{/* Environment of an app's container, without MEMWATCH_CONTAINER and NODE_OPTIONS, which differ
     between containers. */}}
{{- define "memwatch.appEnv" -}}
- name: MEMWATCH_SOCKET
  value: {{ eq .mode "sidecar" | ternary "/run/memwatch/exporter.sock" "/run/memwatch-node/exporter.sock" }}
{{- if eq .mode "sidecar" }}
- name: MEMWATCH_TOKEN_FILE
  value: /run/memwatch/token
{{- end }}
- name: MEMWATCH_POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: MEMWATCH_POD_NAMESPACE
  valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
- name: MEMWATCH_POD_UID
  valueFrom: { fieldRef: { fieldPath: metadata.uid } }
- name: MEMWATCH_MEMORY_LIMIT_BYTES
  valueFrom: { resourceFieldRef: { resource: limits.memory } }
{{- end }}

{{- define "memwatch.appMounts" -}}
- { name: memwatch, mountPath: /run/memwatch, readOnly: true }
{{- if eq .mode "node" }}
- { name: memwatch-node, mountPath: /run/memwatch-node, subPathExpr: $(MEMWATCH_POD_UID), readOnly: true }
{{- end }}
{{- end }}

{{- define "memwatch.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "memwatch.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "memwatch.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "memwatch.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "memwatch.selectorLabels" -}}
app.kubernetes.io/name: {{ include "memwatch.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of all objects. commonLabels cannot replace the labels that selectors need. */}}
{{- define "memwatch.labels" -}}
{{- $standard := include "memwatch.selectorLabels" . | fromYaml }}
{{- $_ := set $standard "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") }}
{{- $_ := set $standard "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_") }}
{{- $_ := set $standard "app.kubernetes.io/managed-by" .Release.Service }}
{{- $_ := set $standard "app.kubernetes.io/part-of" "memwatch" }}
{{- toYaml (merge $standard .Values.commonLabels) }}
{{- end }}

{{/* Metadata of an object. Argument: dict "context" $ "name" … "labels" {} "annotations" {} */}}
{{- define "memwatch.metadata" -}}
name: {{ .name }}
{{- if .namespace }}
namespace: {{ .namespace }}
{{- end }}
labels:
  {{- toYaml (merge (include "memwatch.labels" .context | fromYaml) (.labels | default dict)) | nindent 2 }}
{{- with merge (deepCopy (.annotations | default dict)) .context.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "memwatch.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* Labels of the exporters of nodes. */}}
{{- define "memwatch.nodeLabels" -}}
{{ include "memwatch.selectorLabels" . }}
app.kubernetes.io/component: node
{{- end }}

{{/* Renders a value as CEL. The items of maps and lists of mixed types need dyn() in CEL. */}}
{{- define "memwatch.cel" -}}
{{- if kindIs "map" . -}}
{{- $map := . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }}, {{ end }}{{ toJson $key }}: dyn({{ include "memwatch.cel" (index $map $key) }}){{ end -}} }
{{- else if kindIs "slice" . -}}
[{{ range $i, $item := . }}{{ if $i }}, {{ end }}dyn({{ include "memwatch.cel" $item }}){{ end }}]
{{- else if kindIs "float64" . -}}
{{ int . }}
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end }}

{{/* Renders a list as CEL, with one item on each line, so that people can read the policy. */}}
{{- define "memwatch.celLines" -}}
[
{{- range $i, $item := . }}{{ if $i }},{{ end }}
  {{ include "memwatch.cel" $item }}
{{- end }}
]
{{- end }}

{{/* A value in CEL. Maps and lists of mixed types must be dyn there. */}}
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

{{/* A list in CEL, an item on a line: for people who read the policy. */}}
{{- define "memwatch.celLines" -}}
[
{{- range $i, $item := . }}{{ if $i }},{{ end }}
  {{ include "memwatch.cel" $item }}
{{- end }}
]
{{- end }}

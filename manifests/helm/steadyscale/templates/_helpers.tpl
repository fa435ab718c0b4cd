{{/* The labels of every object. */}}
{{- define "steadyscale.labels" -}}
app.kubernetes.io/name: steadyscale
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{/* The image; with a digest the tag only informs. */}}
{{- define "steadyscale.image" -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/*
A value as JSON, which is also YAML: toYaml with an indentation changes some strings, such as those that end with a line
break. YAML, unlike JSON, takes U+0085 for a line break and does not allow U+007F.
*/}}
{{- define "steadyscale.json" -}}
{{- toJson . | replace (printf "%c" 133) "\\u0085" | replace (printf "%c" 127) "\\u007f" -}}
{{- end }}

{{/* The entries of a map, one per line. */}}
{{- define "steadyscale.entries" -}}
{{- range $name, $value := . }}
{{ include "steadyscale.json" $name }}: {{ include "steadyscale.json" $value }}
{{- end }}
{{- end }}

{{/* The items of a list, one per line. */}}
{{- define "steadyscale.items" -}}
{{- range . }}
- {{ include "steadyscale.json" . }}
{{- end }}
{{- end }}

{{/* What every object is labelled with. */}}
{{- define "steadyscale.labels" -}}
app.kubernetes.io/name: steadyscale
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The configuration, with a certificate of our own making where none is named. */}}
{{- define "steadyscale.config" -}}
{{- $managed := dict "tls" (dict "selfManaged" (dict "namespace" .Release.Namespace)) -}}
{{- $serving := .Values.config.serving | default dict -}}
{{- if not (hasKey $serving "tls") }}{{ $serving = merge (deepCopy $serving) $managed }}{{ end -}}
{{- toYaml (merge (dict "serving" $serving) .Values.config) -}}
{{- end }}

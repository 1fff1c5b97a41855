{{- define "plimsoll.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end -}}

{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "plimsoll.labels" -}}
{{ include "plimsoll.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "plimsoll.toml" -}}
{{- /* A table of `settings` must come after these keys. */ -}}
bootstrap_server = {{ .Values.bootstrapServer | quote }}
{{- if .Values.clientSecret }}
client_properties = "/etc/plimsoll/client/client.properties"
{{- end }}
{{- with .Values.settings }}
{{ . | trim }}
{{- end }}
{{- end -}}

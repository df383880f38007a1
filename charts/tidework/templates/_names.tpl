{{/* Names, labels and the few blocks that several templates share. */}}

{{/* What every object's name begins with: the release's, with "tidework" in it. */}}
{{- define "tidework.name" -}}
{{- $name := ternary .Release.Name (printf "%s-tidework" .Release.Name) (contains "tidework" .Release.Name) -}}
{{- $name | trunc 43 | trimSuffix "-" -}}
{{- end }}

{{- define "tidework.operator" -}}{{ include "tidework.name" . }}-operator{{- end }}

{{- define "tidework.redis" -}}{{ include "tidework.name" . }}-redis{{- end }}

{{/* The Secret of a connection, called the same in the operator's namespace and in those with workers. The
     operator writes this name into worker pods (tidework_operator/naming.py). Argument: the connection's name. */}}
{{- define "tidework.connectionSecret" -}}tidework-redis-{{ . }}{{- end }}

{{/* What selects the pods of a part. Arguments: root, part. */}}
{{- define "tidework.selector" -}}
app.kubernetes.io/name: tidework-{{ .part }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{/* Of pods: nothing that changes with the version, or every upgrade would restart Redis. Arguments: root, part. */}}
{{- define "tidework.podLabels" -}}
{{ include "tidework.selector" . }}
app.kubernetes.io/component: {{ .part }}
app.kubernetes.io/part-of: tidework
{{- end }}

{{/* Arguments: root, part. */}}
{{- define "tidework.labels" -}}
{{ include "tidework.podLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Pod Security "restricted", and a root file system that nothing can be written to. */}}
{{- define "tidework.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "tidework.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Where pods go. Argument: values with nodeSelector, tolerations and priorityClassName. */}}
{{- define "tidework.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

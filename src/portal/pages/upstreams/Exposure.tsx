import { Alert, Stack } from "@mantine/core"
import type { Settings } from "./passthroughSettings.ts"

/** Settings that are stored, or that somebody is about to store. */
type Exposed = Omit<Settings, "updated_at">

/** Warns of what an enabled wildcard lets people do, worst first. */
export const Exposure = ({ of }: { readonly of: Exposed }) => {
  const warnings = warningsOf(of)
  return (
    warnings.length > 0 && (
      <Stack gap="sm">
        {warnings.map(([field, sentence]) => (
          <Alert key={sentence} color="yellow" title={<code>{field}</code>} styles={readable}>
            {sentence}
          </Alert>
        ))}
      </Stack>
    )
  )
}

/** The title has the colour of the alert by default, which is too pale on its light background. */
const readable = { title: { color: "var(--text)" } }

const warningsOf = (settings: Exposed): ReadonlyArray<readonly [field: keyof Exposed, sentence: string]> => {
  const all: ReadonlyArray<readonly [keyof Exposed, boolean, string]> = [
    [
      "admin_api_exposure",
      settings.admin_api_exposure === "explicitly_exposed",
      "Every key may call the upstream’s administration, with the upstream’s own credential."
    ],
    [
      "admin_api_exposure",
      settings.admin_api_exposure === "operator_only",
      "Operators may call the upstream’s administration through the proxy listener."
    ],
    [
      "ui_exposure",
      settings.ui_exposure === "explicitly_exposed",
      "Everybody who reaches the proxy listener sees the upstream’s UI."
    ],
    [
      "ui_exposure",
      settings.ui_exposure === "trusted_ingress",
      "The trusted gateway in front decides who sees the upstream’s UI."
    ],
    [
      "ui_exposure",
      settings.ui_exposure === "operator_only",
      "Operators see the upstream’s UI through the proxy listener."
    ],
    [
      "guardrails",
      settings.guardrails === "skip",
      "Requests on the wildcard pass no guardrail, also of keys for which guardrails are mandatory."
    ],
    [
      "body_policies",
      settings.body_policies === "skip",
      "Policies about the body, such as allowed_models, do not hold on the wildcard."
    ],
    ["ownership", settings.ownership === "shared", "Every key may use the files and batches that others created."],
    [
      "allowed_paths",
      settings.allowed_paths.some((path) => path === "*" || path === "/*"),
      "All paths of the upstream are open, also those that it adds later."
    ]
  ]
  return all.filter(([, holds]) => holds).map(([field, , sentence]) => [field, sentence] as const)
}

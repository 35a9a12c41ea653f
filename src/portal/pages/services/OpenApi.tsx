import { Alert, Button, Group, Stack, TextInput } from "@mantine/core"
import { type FormEvent, useState } from "react"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { errorAt, useSubmit } from "../../shared/change/useSubmit.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { countedText } from "../../shared/words/format.ts"
import { When } from "../../shared/words/When.tsx"
import styles from "./Services.module.css"
import { type Endpoint, path, type Service } from "./service.tsx"

type Preview = ResponseOf<"POST", "/admin-ui/admin/services/:name/openapi/preview">

/** The document that the service serves now, as a difference from the one that was taken over. */
export const OpenApi = ({ service }: { readonly service: Service }) => {
  const { name } = service
  const mayChange = useAllowed("services:update")
  const [source, setSource] = useState(service.openapi_source_path ?? "/openapi.json")
  const { error, isBusy, reset, result, submit } = useSubmit<Preview>()
  const { ask, dialog } = useConfirm()
  const preview = (event: FormEvent) => {
    event.preventDefault()
    void submit(() => call("POST", `${path}/openapi/preview`, { params: { name }, body: { source_path: source } }))
  }
  const sync = ({ added, removed, schema_hash, source_path }: Preview) =>
    ask({
      title: `Take over the document of ${name}`,
      action: "Take over",
      body: <Difference preview={{ added, removed }} />,
      run: () =>
        call("POST", `${path}/openapi/sync`, {
          params: { name },
          body: { source_path, expected_schema_hash: schema_hash }
        }),
      done: `The endpoints of ${name} are those of its document.`,
      audit: { type: "service", id: name },
      onDone: reset
    })
  return (
    <Stack gap="sm">
      <Panel title="Taken over">
        <Facts
          facts={[
            ["From", <code key="from">{service.openapi_source_path ?? "–"}</code>],
            ["When", <When key="when" at={service.openapi_synced_at} absent="never" />],
            ["Endpoints", service.openapi_endpoints.length],
            ["Hash", <code key="hash">{service.openapi_schema_hash ?? "–"}</code>]
          ]}
        />
      </Panel>
      {mayChange && (
        <Panel title="Compare with what the service serves now">
          <Stack gap="sm">
            <form onSubmit={preview}>
              <Group align="end">
                <TextInput
                  label="source_path"
                  description="At the address of the service."
                  value={source}
                  onChange={({ currentTarget }) => setSource(currentTarget.value)}
                  error={errorAt(error, "source_path")}
                  miw={240}
                />
                <Button type="submit" loading={isBusy}>
                  Preview
                </Button>
              </Group>
            </form>
            {error !== null && <ErrorNote error={error} />}
            {result !== undefined && (
              <>
                <p>
                  <ForeignText>{result.title ?? "A document without a title"}</ForeignText> {result.version}:{" "}
                  {countedText(result.endpoints.length, "endpoint")}.
                </p>
                <Difference preview={result} />
                <Group>
                  <Button onClick={() => sync(result)} disabled={result.schema_hash === service.openapi_schema_hash}>
                    Take it over
                  </Button>
                </Group>
              </>
            )}
          </Stack>
        </Panel>
      )}
      {dialog}
    </Stack>
  )
}

const Difference = ({ preview: { added, removed } }: { readonly preview: Pick<Preview, "added" | "removed"> }) =>
  added.length === 0 && removed.length === 0 ? (
    <Alert color="gray">The endpoints are the same.</Alert>
  ) : (
    <ul className={styles.endpoints} aria-label="Difference of the endpoints">
      {removed.map((endpoint) => (
        <EndpointLine key={`- ${endpoint.method} ${endpoint.path_template}`} endpoint={endpoint} kind="removed" />
      ))}
      {added.map((endpoint) => (
        <EndpointLine key={`+ ${endpoint.method} ${endpoint.path_template}`} endpoint={endpoint} kind="added" />
      ))}
    </ul>
  )

const EndpointLine = ({ endpoint, kind }: { readonly endpoint: Endpoint; readonly kind: "added" | "removed" }) => (
  <li data-kind={kind}>
    <strong>
      {kind === "added" ? "+" : "−"} {kind}
    </strong>{" "}
    <code>
      {endpoint.method} {endpoint.path_template}
    </code>{" "}
    <ForeignText>{endpoint.summary}</ForeignText>
  </li>
)

import { Button, Checkbox, PasswordInput, Stack, TextInput } from "@mantine/core"
import type { UseQueryResult } from "@tanstack/react-query"
import { useState } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useAllowed } from "../../api/session.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { useSubmit } from "../../shared/change/useSubmit.ts"
import { FieldName } from "../../shared/fields/FieldName.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { countText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"

type StudioConnection = ResponseOf<"GET", "/admin-ui/admin/studio/connection">
export type ConnectionQuery = UseQueryResult<StudioConnection, ApiError>
const path = "/admin-ui/admin/studio/connection"

const sources = {
  persisted: "stored here",
  environment: "from the environment",
  unset: "not set"
} as const

/** Where the studio is, and whether it answers. */
export const Connection = ({ query }: { readonly query: ConnectionQuery }) => {
  const mayChange = useAllowed("settings:update")
  const [isOpen, setOpen] = useState(false)
  const { error, isBusy, result, submit } = useSubmit<ResponseOf<"POST", "/admin-ui/admin/studio/connection/test">>()
  const { ask, dialog } = useConfirm<StudioConnection>()
  const connection = query.data
  return (
    <Panel
      title="Connection"
      query={query}
      height={110}
      actions={
        connection !== undefined && (
          <>
            {connection.base_url !== null && (
              <Button
                variant="default"
                loading={isBusy}
                onClick={() => void submit(() => call("POST", `${path}/test`, {}))}
              >
                Test
              </Button>
            )}
            {mayChange && (
              <Button variant="default" onClick={() => setOpen(true)}>
                Change
              </Button>
            )}
            {mayChange && connection.source === "persisted" && (
              <Button
                variant="default"
                c="red"
                onClick={() =>
                  ask({
                    title: "Delete the stored connection",
                    action: "Delete",
                    name: "studio",
                    body: <p>The address of the environment applies again, if there is one. Imported services stay.</p>,
                    run: () => call("PATCH", path, { body: { base_url: null } }),
                    done: "The stored connection is deleted.",
                    audit: { type: "studio_connection" }
                  })
                }
              >
                Delete
              </Button>
            )}
          </>
        )
      }
    >
      {connection !== undefined && (
        <Stack gap="sm">
          <Facts
            facts={[
              ["base_url", <ForeignText key="url">{connection.base_url ?? "not set"}</ForeignText>],
              ["token", connection.token_configured ? "configured" : "missing"],
              ["source", sources[connection.source]],
              ["changed", <When key="changed" at={connection.updated_at} absent="never" />]
            ]}
          />
          {result !== undefined && (
            <output>
              <StatusWord meaning="good">it answers</StatusWord> It has {countText(result.service_count)} services.
            </output>
          )}
          {error !== null && <ErrorNote error={error} />}
          {isOpen && <ConnectionForm connection={connection} onClose={() => setOpen(false)} />}
        </Stack>
      )}
      {dialog}
    </Panel>
  )
}

const ConnectionForm = ({
  connection,
  onClose
}: {
  readonly connection: StudioConnection
  readonly onClose: () => void
}) => {
  // the page behind the form goes on to follow what others change
  const [base] = useState(connection)
  const [url, setUrl] = useState(base.base_url ?? "")
  const [token, setToken] = useState("")
  const [isCleared, setCleared] = useState(false)
  const { ask, dialog } = useConfirm<StudioConnection>()
  const isMoved = url !== (base.base_url ?? "")
  // a token of the environment is changed there
  const isStored = base.source === "persisted" && base.token_configured
  const secret = token !== "" ? { token } : isCleared ? { token: null } : {}
  const body = { ...(isMoved && { base_url: url }), ...secret }
  const isKept = !("token" in secret)
  const save = () =>
    ask({
      title: "Change the connection to the studio",
      action: "Change",
      guard: {
        base,
        reread: () => call("GET", path, {}),
        fieldsOf: ({ base_url, token_configured }) => ({ base_url, token: token_configured ? "configured" : null }),
        changes: {
          ...(isMoved && { base_url: url }),
          ...(!isKept && { token: token === "" ? "cleared" : "a new one" })
        }
      },
      body: isMoved && isKept && base.token_configured && (
        <p>A stored token belongs to its address: on another scheme, host or port it is removed.</p>
      ),
      run: ({ updated_at }) => call("PATCH", path, { body: { ...body, expected_updated_at: updated_at } }),
      ...(isKept && {
        undo: ({ base_url, source }: StudioConnection, { updated_at }: StudioConnection) =>
          call("PATCH", path, {
            body: { base_url: source === "persisted" ? base_url : null, expected_updated_at: updated_at }
          })
      }),
      done: "The connection is changed.",
      audit: { type: "studio_connection" },
      onDone: onClose
    })
  return (
    <>
      <FormDrawer
        title="Connection to the studio"
        action="Show the difference"
        isBusy={false}
        isDisabled={!isMoved && isKept}
        error={null}
        onSubmit={save}
        onClose={onClose}
      >
        <TextInput
          label={<FieldName name="base_url" />}
          description="It must answer GET /studio/gateway/services."
          placeholder="https://studio.example.com"
          value={url}
          onChange={({ currentTarget }) => setUrl(currentTarget.value)}
          data-autofocus
        />
        <PasswordInput
          label="token"
          description={connection.token_configured ? "One is configured. A new one replaces it." : "Never shown again."}
          value={token}
          onChange={({ currentTarget }) => setToken(currentTarget.value)}
          autoComplete="off"
        />
        {isStored && (
          <Checkbox
            label="Clear the token that is configured"
            checked={isCleared}
            onChange={({ currentTarget }) => setCleared(currentTarget.checked)}
          />
        )}
      </FormDrawer>
      {dialog}
    </>
  )
}

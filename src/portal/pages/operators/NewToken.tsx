import { Button, Checkbox, Group, Modal, Skeleton, Stack, TextInput } from "@mantine/core"
import { useState } from "react"
import { useApi, useApiWrite } from "../../api/queries.ts"
import { useSession } from "../../api/session.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { SecretOnce } from "../../shared/dialogs/SecretOnce.tsx"
import { TimeInput } from "../../shared/dialogs/TimeInput.tsx"
import { useUnstoredSecret } from "../../shared/dialogs/useUnstoredSecret.ts"
import { FieldName } from "../../shared/fields/FieldName.tsx"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { staleAfterTokens, tokensPath } from "./operator.ts"

const scopesPath = "/admin-ui/admin/operator-tokens/scopes"

/**
 * The list of the scopes that the first token may give is about so high, in pixels. The dialog stands in the middle of the
 * window, so all of it would move if this place were lower.
 */
const scopesHeight = 900

/** Makes a token with some of the scopes that the caller has. */
export const NewToken = ({ onClose }: { readonly onClose: () => void }) => {
  const session = useSession()
  const scopes = useApi(scopesPath, {})
  const [name, setName] = useState("")
  const [chosen, setChosen] = useState<ReadonlyArray<string>>([])
  const [expires, setExpires] = useState<string | null>(null)
  const create = useApiWrite("POST", tokensPath, staleAfterTokens, { hasSecret: true })
  const tell = useTell()
  useUnstoredSecret(create.isPending)
  const held = session.state === "signed-in" ? session.who.scopes : []
  const mayGrant = (scope: string) => held.includes("*") || held.includes(scope)
  const offered = (scopes.data ?? []).filter(({ scope }) => mayGrant(scope))
  const errorOf = (field: string) => create.error?.fields.find((one) => one.field === field)?.message
  if (create.data !== undefined) {
    const { token } = create.data
    return (
      <SecretOnce
        title={`The operator token ${token.name}`}
        secret={create.data.raw_token}
        onStored={() => {
          create.reset()
          onClose()
          tell({ done: `The operator token ${token.name} is made.`, audit: { type: "operator_token", id: token.id } })
        }}
      />
    )
  }
  return (
    <Modal opened onClose={create.isPending ? () => {} : onClose} title="Create an operator token" size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate({
            body: {
              name,
              scopes: offered.map(({ scope }) => scope).filter((scope) => chosen.includes(scope)),
              expires_at: expires
            }
          })
        }}
      >
        <Stack gap="sm">
          <TextInput
            label="Name"
            description="Who or what holds it, such as “dashboards”."
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
            error={errorOf("name")}
            required
            data-autofocus
          />
          <Checkbox.Group
            label="Scopes"
            description="Only those that your own token has."
            value={[...chosen]}
            onChange={setChosen}
            error={errorOf("scopes")}
          >
            <Stack gap={6} mt={4} mih={scopes.data === undefined ? scopesHeight : undefined}>
              {scopes.isPending && <Skeleton height={scopesHeight} />}
              {scopes.error !== null && <ErrorNote error={scopes.error} onRetry={() => scopes.refetch()} />}
              {offered.map(({ help, scope }) => (
                <Checkbox key={scope} value={scope} label={<code>{scope}</code>} description={help} />
              ))}
            </Stack>
          </Checkbox.Group>
          <TimeInput
            label={<FieldName name="expires_at" />}
            value={expires}
            onChange={setExpires}
            error={errorOf("expires_at")}
          />
          {create.error !== null && create.error.fields.length === 0 && <ErrorNote error={create.error} />}
          <Group justify="end">
            <Button variant="default" onClick={onClose} disabled={create.isPending}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending} disabled={name === "" || chosen.length === 0}>
              Create the token
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

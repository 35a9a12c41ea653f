import { Button, TextInput } from "@mantine/core"
import { useState } from "react"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { useUnstoredSecret } from "../../../shared/dialogs/useUnstoredSecret.ts"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import styles from "./FirstSteps.module.css"

/** A key that this page has made, and its secret until the person says that it is stored. */
export interface MadeKey {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly secret: string
  readonly policy: ResponseOf<"POST", typeof keysPath>["key"]["policy"]
}

const keysPath = "/admin-ui/admin/keys"

/** Makes a key with a name and nothing else. The page of keys has everything that a key can have. */
export const MakeKey = ({ onMade }: { readonly onMade: (key: MadeKey) => void }) => {
  const [name, setName] = useState("first key")
  const maySeeKeys = useAllowed("operators:manage")
  const create = useApiWrite("POST", keysPath, [keysPath], { hasSecret: true })
  useUnstoredSecret(create.isPending)
  const existing = useApi(keysPath, { query: { limit: 1, state: "active" } }, { enabled: maySeeKeys })
  const nameError = create.error?.fields.find(({ field }) => field === "name")?.message
  return (
    <form
      className={styles.content}
      onSubmit={(event) => {
        event.preventDefault()
        create.mutate(
          { body: { name: name.trim(), owner_type: "individual" } },
          {
            onSuccess: ({ key, raw_key }) =>
              onMade({
                id: key.id,
                name: key.name ?? key.key_prefix,
                prefix: key.key_prefix,
                secret: raw_key,
                policy: key.policy
              })
          }
        )
      }}
    >
      <p>A key lets one application or person use the gateway. Limits and rules can be added to it later.</p>
      <div className={styles.row}>
        <TextInput
          label="Name"
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          error={nameError}
          maxLength={128}
          required
        />
        <Button type="submit" loading={create.isPending} disabled={name.trim() === ""}>
          Make the key
        </Button>
        {maySeeKeys && (
          <LinkButton variant="subtle" path="/keys/new">
            With an owner and limits
          </LinkButton>
        )}
      </div>
      {create.error !== null && nameError === undefined && <ErrorNote error={create.error} />}
      {(existing.data?.length ?? 0) > 0 && (
        <p>There are keys already. If you have the secret of one, send a request with it: it appears below.</p>
      )}
    </form>
  )
}

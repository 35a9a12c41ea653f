import { Button } from "@mantine/core"
import { useState } from "react"
import { useNow } from "../../../address/useNow.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "../state/Limits.module.css"
import { endRaisePath, statePath } from "../state/limitStates.ts"

const path = "/admin-ui/admin/limits/:key_id/raises"
type Raise = ResponseOf<"GET", typeof path>[number]

const limitsText = ({ limits }: Raise): string =>
  Object.entries(limits)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")

/** The exceptions of a key: those in force can be ended before their time. */
export const Exceptions = ({ keyId }: { readonly keyId: string }) => {
  const raises = useApi(path, { params: { key_id: keyId }, query: { limit: 20 } })
  const mayEnd = useAllowed("policies:update")
  const now = useNow(10_000)
  const [ending, setEnding] = useState<Raise>()
  const tell = useTell()
  const end = useApiWrite("POST", endRaisePath, [path, statePath])
  const list = raises.data ?? []
  const isOver = ({ ended_at, until }: Raise) => ended_at !== null || Date.parse(until) <= now
  return (
    <Panel
      title="Exceptions"
      query={raises}
      height={60}
      {...(raises.data !== undefined && list.length === 0 && { empty: <p>No limit of this key was raised.</p> })}
    >
      <ul className={styles.list}>
        {list.map((raise) => (
          <li key={raise.id}>
            <p className={styles.line}>
              <StatusWord meaning={isOver(raise) ? "idle" : "working"}>
                {isOver(raise) ? "over" : "in force"}
              </StatusWord>
              <code>{limitsText(raise)}</code>
              <span>
                until <When at={raise.ended_at ?? raise.until} />
              </span>
              {mayEnd && !isOver(raise) && (
                <Button variant="default" onClick={() => setEnding(raise)}>
                  End it
                </Button>
              )}
            </p>
            <p className={styles.muted}>
              <ForeignText>{raise.reason}</ForeignText> · made <When at={raise.created_at} />
            </p>
          </li>
        ))}
      </ul>
      {ending !== undefined && (
        <ChangeDialog
          title="End the exception"
          action="End it"
          isBusy={end.isPending}
          error={end.error}
          onClose={() => {
            end.reset()
            setEnding(undefined)
          }}
          onConfirm={() =>
            end.mutate(
              { params: { key_id: keyId, id: ending.id } },
              {
                onSuccess: () => {
                  setEnding(undefined)
                  tell({
                    done: "The exception has ended. The former limits are back.",
                    audit: { type: "key", id: keyId }
                  })
                }
              }
            )
          }
        >
          <p>
            <code>{limitsText(ending)}</code> ends now instead of <When at={ending.until} />. The former limits apply to
            the next request; what was counted stays counted.
          </p>
        </ChangeDialog>
      )}
    </Panel>
  )
}

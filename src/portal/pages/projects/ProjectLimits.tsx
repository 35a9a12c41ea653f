import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { Meter } from "../../shared/charts/Meter.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { amountText } from "../../shared/words/amountText.ts"
import { When } from "../../shared/words/When.tsx"
import styles from "./ProjectLimits.module.css"
import type { Project } from "./project.ts"

const path = "/admin-ui/admin/limits/state"
const liveTopics = ["limits", "configuration"] as const
const refreshMs = 15_000
const mostShown = 20

/** Shows how far budgets and limits are used now: first those that all keys of the project share, then its keys' own. */
export const ProjectLimits = ({ of: project }: { readonly of: Project }) => {
  const state = useApi(path, { query: { scope: "project", id: project.id, limit: 500 } }, { refreshMs })
  useLiveRefresh(liveTopics, [path])
  const maySet = useAllowed("policies:update")
  const limits = state.data?.limits ?? []
  const shared = limits.filter(({ scope }) => scope !== "key")
  const all = [...shared, ...limits.filter(({ scope, unit }) => scope === "key" && unit === "usd")]
  const shown = all.slice(0, mostShown)
  return (
    <Panel
      title="Budgets now"
      note={`what all its keys share, and the budgets of its keys that were used in this month${all.length > mostShown ? `: ${mostShown} of ${all.length}` : ""}`}
      query={state}
      height={220}
      actions={<PathLink path={`/limits?scope=project&id=${project.id}`}>All limits of its keys</PathLink>}
      {...(shown.length === 0 && {
        empty: (
          <Empty
            action={
              maySet && (
                <LinkButton path="/policies" search={{ do: "edit", kind: "project", scope: project.id }}>
                  Set a budget
                </LinkButton>
              )
            }
          >
            Neither the project nor one of its keys has a budget.
          </Empty>
        )
      })}
    >
      <ul className={styles.list}>
        {shown.map(({ limit, meter, reserved, resets_at, scope, scope_id, scope_name, unit, used }) => (
          <li key={`${scope} ${scope_id} ${meter}`}>
            <p className={styles.line}>
              <code>{meter}</code>
              <span>
                {scope === "key" ? (
                  <>
                    of{" "}
                    <PathLink path={`/keys/${scope_id}`}>
                      <ForeignText>{scope_name}</ForeignText>
                    </PathLink>
                  </>
                ) : (
                  "of all keys together"
                )}
              </span>
              <span className={styles.muted}>
                resets <When at={resets_at} />
              </span>
            </p>
            {used === null ? (
              <span className={styles.muted}>Unknown, of {amountText(limit, unit)}: the counter is not read yet.</span>
            ) : (
              <Meter
                label={`${meter} of ${scope === "key" ? scope_name : project.name}`}
                used={used}
                reserved={reserved ?? 0}
                limit={limit}
                format={(amount) => amountText(amount, unit)}
              />
            )}
          </li>
        ))}
      </ul>
    </Panel>
  )
}

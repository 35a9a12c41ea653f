import { useApi } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { Command } from "./common/Command.tsx"
import styles from "./guardrails/Bench.module.css"
import { Bench } from "./guardrails/Bench.tsx"
import page from "./My.module.css"

const modes = {
  pre_call: "looks at what you send",
  during_call: "looks at answers while they are streamed",
  post_call: "looks at whole answers"
} as const

/** What looks at the requests of this key, and a place to try it out. */
const MyGuardrailsPage = () => {
  const offered = useApi("/admin-ui/v1/me/guardrails", {})
  const guardrails = offered.data?.guardrails ?? []
  return (
    <>
      <PageHeader
        title="Guardrails"
        actions={<Command address="/admin-ui/v1/me/guardrails" />}
        lead="Guardrails look at what you send and get. They hide or stop what should not leave, such as personal data."
      />
      <div className={page.stack}>
        <Panel
          title="For your key"
          query={offered}
          height={120}
          {...(offered.data !== undefined &&
            guardrails.length === 0 && { empty: <Empty>No guardrail looks at your requests.</Empty> })}
        >
          <ul className={styles.offered}>
            {guardrails.map(({ always_on, description, failure_policy, modes: of, name }) => (
              <li key={name}>
                <div className={styles.head}>
                  <strong>
                    <ForeignText>{name}</ForeignText>
                  </strong>
                  {always_on ? (
                    <StatusWord meaning="good">always on</StatusWord>
                  ) : (
                    <StatusWord meaning="idle">on where a request asks for it</StatusWord>
                  )}
                </div>
                {description !== null && (
                  <p>
                    <ForeignText>{description}</ForeignText>
                  </p>
                )}
                <p className={styles.muted}>
                  {of.map((mode) => modes[mode]).join(", ")}
                  {failure_policy === "fail_closed" && "; if it cannot be asked, the request is not sent"}
                </p>
              </li>
            ))}
          </ul>
        </Panel>
        <Bench />
      </div>
    </>
  )
}

export default MyGuardrailsPage

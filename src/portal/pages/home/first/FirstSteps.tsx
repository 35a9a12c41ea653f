import { Button } from "@mantine/core"
import { useState } from "react"
import { useAllowed } from "../../../api/session.ts"
import { useUnstoredSecret } from "../../../shared/dialogs/useUnstoredSecret.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { useFirstModel } from "../../../shared/keys/firstModel.ts"
import { Empty } from "../../../shared/page/Empty.tsx"
import { firstCommand, usualModel } from "../../../shared/snippets/firstCommand.ts"
import { Snippets } from "../../../shared/snippets/Snippets.tsx"
import styles from "./FirstSteps.module.css"
import { type MadeKey, MakeKey } from "./MakeKey.tsx"
import { type Arrived, SendRequest } from "./SendRequest.tsx"
import { SetBudget } from "./SetBudget.tsx"
import { Step } from "./Step.tsx"

/** The first minute of an installation: a key, a request that is seen to arrive, a budget, and an agent. */
export const FirstSteps = ({ onDone }: { readonly onDone: () => void }) => {
  const mayCreate = useAllowed("keys:create")
  const mayBudget = useAllowed("policies:update")
  const [made, setMade] = useState<MadeKey>()
  const [arrived, setArrived] = useState<Arrived>()
  const [tool, setTool] = useState("claude-code")
  const [budget, setBudget] = useState<number>()
  const { name: model = usualModel } = useFirstModel(made?.policy.allowed_models ?? null)
  const isUnstored = made !== undefined && made.secret !== ""
  useUnstoredSecret(isUnstored)
  if (!mayCreate) {
    return <Empty command={firstCommand}>No request was recorded yet. Requests appear here as they end.</Empty>
  }
  const isSent = arrived !== undefined
  return (
    <ol className={styles.steps}>
      <Step number={1} title="Make a key" state={made !== undefined || isSent ? "done" : "now"}>
        {made === undefined && !isSent ? (
          <MakeKey onMade={setMade} />
        ) : (
          made !== undefined && (
            <p>
              <ForeignText>{made.name}</ForeignText> <code>{made.prefix}</code>
            </p>
          )
        )}
      </Step>
      <Step number={2} title="Send a request" state={isSent ? "done" : made === undefined ? "waiting" : "now"}>
        <SendRequest
          made={made}
          model={model}
          arrived={arrived}
          onArrived={setArrived}
          onStored={() => setMade((before) => before && { ...before, secret: "" })}
        />
      </Step>
      <Step
        number={3}
        title="Set a budget"
        state={budget !== undefined ? "done" : isSent && made !== undefined ? "now" : "waiting"}
      >
        {made !== undefined && isSent && mayBudget ? (
          <SetBudget made={made} budget={budget} onSet={setBudget} />
        ) : (
          <p>The most that the key may spend in a day. What is beyond it is refused before it costs anything.</p>
        )}
      </Step>
      <Step number={4} title="Set up an agent" state={isSent ? "now" : "waiting"}>
        {isSent ? (
          <Snippets secret={made?.secret || undefined} model={model} tool={tool} onTool={setTool} />
        ) : (
          <p>Claude Code, Codex, Cursor and the SDKs of OpenAI and Anthropic work with this gateway and a key.</p>
        )}
      </Step>
      {isSent && (
        <li>
          <Button onClick={onDone} disabled={isUnstored}>
            Go on to the home page
          </Button>
          {isUnstored && <p>Store the secret of the key first: step 2 has it.</p>}
        </li>
      )}
    </ol>
  )
}

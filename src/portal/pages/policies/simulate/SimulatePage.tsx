import { Button, Stack } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useId, useState } from "react"
import { useTextSearch } from "../../../address/search.ts"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { ImpactNote } from "../../../shared/policy/Impact.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { Applied } from "./Applied.tsx"
import { Decisions } from "./Decisions.tsx"
import { Proposal } from "./Proposal.tsx"
import { impactOf, isProposed, noChanges, type ProposalDraft, proposalFor, simulationOf } from "./proposal.ts"
import { RequestForm } from "./RequestForm.tsx"
import { bodyOf, firstRequest, type RequestDraft } from "./request.ts"
import styles from "./Simulate.module.css"
import { simulatePath, useSimulations } from "./useSimulations.ts"

/** Decides a request as the gateway would: now, and after a change that is not made yet. */
const SimulatePage = () => {
  const { text } = useTextSearch()
  const [request, setRequest] = useState<RequestDraft>(() =>
    firstRequest({ key: text("key_id"), path: text("path"), model: text("model") })
  )
  const [proposal, setProposal] = useState<ProposalDraft>(() => proposalFor(text("kind"), text("scope")))
  const simulations = useSimulations()
  const formId = useId()
  const body = bodyOf(request)
  const impact = impactOf(proposal, request)
  const run = () => {
    if (typeof body === "string") return
    simulations.run(body, isProposed(proposal) ? { ...body, ...simulationOf(proposal) } : undefined)
  }
  return (
    <>
      <PageHeader
        title="Try a policy out"
        lead="The gateway's own rules decide. Nothing is sent, and nothing counts against limits."
        actions={
          <>
            <CopyAs
              method="POST"
              address={simulatePath}
              body={typeof body === "string" ? {} : { ...body, ...simulationOf(proposal) }}
            />
            <Button component={Link} to="/policies" variant="default">
              Layers
            </Button>
          </>
        }
      />
      <form
        id={formId}
        onSubmit={(event) => {
          event.preventDefault()
          run()
        }}
      >
        <div className={styles.columns}>
          <Panel title="The request">
            <RequestForm
              request={request}
              onChange={setRequest}
              problem={typeof body === "string" ? body : undefined}
            />
          </Panel>
          <Panel title="The change">
            <Proposal draft={proposal} keyId={request.key_id} onChange={setProposal} />
          </Panel>
        </div>
        <Button type="submit" my="sm" loading={simulations.isBusy} disabled={typeof body === "string"}>
          {isProposed(proposal) ? "Decide now, and with the change" : "Decide"}
        </Button>
      </form>
      <Stack gap="sm">
        <Decisions simulations={simulations} />
        {impact !== undefined && (
          <Panel>
            <ImpactNote proposal={impact} />
            <Applied
              draft={proposal}
              form={formId}
              keyId={request.key_id}
              onDone={() => {
                setProposal({ ...proposal, ...noChanges, layer: undefined })
                // what was decided "now" is of before the change
                simulations.clear()
              }}
            />
          </Panel>
        )}
      </Stack>
    </>
  )
}

export default SimulatePage

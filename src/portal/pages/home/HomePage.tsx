import { Button } from "@mantine/core"
import { useEffect, useState } from "react"
import { useRange } from "../../address/range.ts"
import { addressOf } from "../../api/control.ts"
import { useApi } from "../../api/queries.ts"
import { mayLeaveSecrets } from "../../shared/dialogs/useUnstoredSecret.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { useSettled } from "../../shared/page/useSettled.ts"
import { eventsPath } from "../../shared/usage/useUsageEvents.ts"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { Attention, AttentionPlace } from "./attention/Attention.tsx"
import { FirstSteps } from "./first/FirstSteps.tsx"
import styles from "./Home.module.css"
import { HomeTiles } from "./HomeTiles.tsx"
import { Inventory } from "./Inventory.tsx"
import { NowChart } from "./NowChart.tsx"
import { RequestCharts, requestsPath, requestsRequest } from "./RequestCharts.tsx"
import { SpendChart } from "./SpendChart.tsx"
import { useQueues, useSpend } from "./useNumbers.ts"

/** Is it well, what does it cost, what needs me? */
const HomePage = () => {
  const { range } = useRange()
  const spend = useSpend()
  const queues = useQueues()
  const [step, setStep] = useState<"unknown" | "begun" | "over">("unknown")
  // an installation that was quiet for a month is not a fresh one
  const isQuiet = spend.query.data !== undefined && spend.requests === 0
  const latest = useApi(eventsPath, { query: { limit: 1 } }, { enabled: isQuiet, isAskedAnew: true })
  // an answer of an earlier visit may be older than the first request
  const isFresh = isQuiet && latest.isFetchedAfterMount && latest.data?.rows.length === 0
  // the steps stay until they are left, though the first request has arrived by then
  if (isFresh && step === "unknown") setStep("begun")
  // the dozen requests of the rest take a slow processor as long as to draw the numbers
  const isRestAsked = useIsPainted(useSettled([spend.query]))
  // an installation may run tasks alone: what has failed there comes before the first request
  const isInTrouble = queues.openLetters > 0 || queues.queues.some(({ state }) => state !== "well")
  const leave = () => {
    if (!mayLeaveSecrets()) return
    setStep("over")
    window.scrollTo(0, 0)
    void spend.query.refetch()
  }
  if (step === "begun")
    return (
      <>
        <PageHeader
          title="Home"
          lead="Four steps, and it is in use."
          actions={
            <Button variant="subtle" onClick={leave}>
              Leave these steps
            </Button>
          }
        />
        <div className={styles.stack}>
          {isInTrouble && <Attention />}
          <FirstSteps onDone={leave} />
          {queues.isThere && !isInTrouble && <Attention />}
        </div>
      </>
    )
  return (
    <>
      <PageHeader
        title="Home"
        lead="Is it well, what does it cost, what needs you?"
        actions={<CopyAs address={addressOf(requestsPath, requestsRequest(range))} />}
      />
      <div className={styles.stack}>
        <HomeTiles />
        <Inventory isAsked={isRestAsked} />
        <div className={styles.columns}>
          <div className={styles.stack}>
            <RequestCharts />
            <div className={styles.pair}>
              <SpendChart spend={spend} />
              <NowChart />
            </div>
          </div>
          {isRestAsked ? <Attention /> : <AttentionPlace />}
        </div>
      </div>
    </>
  )
}

/** Returns true once what it is given was true and is painted. */
const useIsPainted = (isThere: boolean): boolean => {
  const [isOver, setOver] = useState(isThere)
  useEffect(() => {
    if (!isThere) return
    const timer = window.setTimeout(() => setOver(true))
    return () => window.clearTimeout(timer)
  }, [isThere])
  return isOver
}

export default HomePage

import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Command } from "./common/Command.tsx"
import { GatewayStatus } from "./home/GatewayStatus.tsx"
import { Limits } from "./home/Limits.tsx"
import { Notices } from "./home/Notices.tsx"
import { OwnUsage } from "./home/OwnUsage.tsx"
import styles from "./My.module.css"
import { RaiseAnswers } from "./raise/RaiseAnswers.tsx"

/** How much the person may still use, and what was used. */
const MyHomePage = () => {
  return (
    <>
      <PageHeader title="Home" lead={<GatewayStatus />} actions={<Command address="/admin-ui/v1/me/limits" />} />
      <div className={styles.stack}>
        <Notices />
        <Limits />
        <OwnUsage />
        <RaiseAnswers />
      </div>
    </>
  )
}

export default MyHomePage

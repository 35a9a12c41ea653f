import { Link } from "@tanstack/react-router"
import { useApi } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { When } from "../../shared/words/When.tsx"
import { Command } from "./common/Command.tsx"
import { Notices } from "./home/Notices.tsx"
import styles from "./key/History.module.css"
import { History } from "./key/History.tsx"
import { Revocation } from "./key/Revocation.tsx"
import { Rotation } from "./key/Rotation.tsx"
import { rulesOf } from "./key/rules.ts"
import page from "./My.module.css"

/** The key itself: whose it is, how long it works, and its secret. */
const MyKeyPage = () => {
  const key = useApi("/admin-ui/v1/me", {})
  const held = key.data
  return (
    <>
      <PageHeader
        title="Key"
        lead="How long it works, and its secret."
        actions={<Command address="/admin-ui/v1/me" />}
      />
      <div className={page.stack}>
        <Notices />
        <div className={page.sides}>
          <Panel title="This key" query={key} height={190}>
            {held !== undefined && (
              <Facts
                facts={[
                  ["Name", held.name === null ? null : <ForeignText key="name">{held.name}</ForeignText>],
                  ["Begins with", <code key="prefix">{held.key_prefix}</code>],
                  [
                    "Project",
                    held.project_name === null ? null : <ForeignText key="project">{held.project_name}</ForeignText>
                  ],
                  ["Made", <When key="made" at={held.created_at} />],
                  ["Last used", <When key="used" at={held.last_used_at} absent="never" />],
                  ["Works until", <When key="until" at={held.expires_at} absent="no end is set" />],
                  ["New secret due", <When key="due" at={held.rotation_due_at} absent="no time is set" />]
                ]}
              />
            )}
          </Panel>
          <Panel title="What it may do" query={key} height={190}>
            {held !== undefined && (
              <>
                <Facts
                  facts={rulesOf(held.policy).map(([about, rule]) => [
                    about,
                    <ForeignText key={about}>{rule}</ForeignText>
                  ])}
                />
                <p className={styles.more}>
                  How much is left of its limits is on <Link to="/my">your home page</Link>.
                </p>
              </>
            )}
          </Panel>
        </div>
        <History />
        <Panel title="Its secret" query={key} height={90}>
          {held !== undefined &&
            (held.holder_rotation ? (
              <>
                <p className={styles.words}>
                  Get a new secret from time to time, and at once if others may have seen the one you have.
                </p>
                <div className={styles.actions}>
                  <Rotation prefix={held.key_prefix} />
                  <Revocation prefix={held.key_prefix} />
                </div>
              </>
            ) : (
              <p className={styles.words}>
                You cannot give this key a new secret yourself. Ask whoever gave it to you, at once if others may have
                seen it.
              </p>
            ))}
        </Panel>
      </div>
    </>
  )
}

export default MyKeyPage

import { useParams } from "@tanstack/react-router"
import { addressOf } from "../../api/control.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { CopyButton } from "../../shared/words/CopyButton.tsx"
import { RequestDetail } from "./detail/RequestDetail.tsx"

/** One request, for somebody who wants to know why it ended as it did. */
const RequestPage = () => {
  const { id = "" } = useParams({ strict: false })
  return (
    <>
      <PageHeader
        title="Request"
        lead={
          <>
            <code>{id}</code> <CopyButton text={id} label="Copy the id" />
          </>
        }
        actions={
          <CopyAs address={addressOf("/admin-ui/admin/debug-bundles/:request_id", { params: { request_id: id } })} />
        }
      />
      <RequestDetail key={id} id={id} wide />
    </>
  )
}

export default RequestPage

import { PageHeader } from "../../shared/page/PageHeader.tsx"

const AuditPage = () => <PageHeader title="Audit" />

export default AuditPage

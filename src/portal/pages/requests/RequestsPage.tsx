import { PageHeader } from "../../shared/page/PageHeader.tsx"

const RequestsPage = () => <PageHeader title="Requests" />

export default RequestsPage

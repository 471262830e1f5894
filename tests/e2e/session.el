;;; session.el --- A user's session in Emacs with Eglot  -*- lexical-binding: t; -*-

;; Open, hover, convert an expression (its edit comes with the action), convert the file (a command), check, see a
;; planted mistake's diagnostic and apply its quick fix.  Writes what was seen as JSON.

(require 'json)
(require 'cl-lib)
(require 'eglot)

(defvar t2j-folder (getenv "T2J_FOLDER"))
(defvar t2j-seen nil)
(defvar t2j-checked nil)
(defvar t2j-limit 60)

(defun t2j-see (name value) (push (cons name value) t2j-seen))

(defun t2j-wait (what condition)
  "Handle the server's messages until CONDITION gives something."
  (let ((end (+ (float-time) t2j-limit)) found)
    (while (and (not (setq found (funcall condition))) (< (float-time) end))
      (accept-process-output nil 0.05))
    (or found (error "Waited in vain for %s" what))))

(cl-defmethod eglot-handle-notification :before (_server (_method (eql t2j/checked)) &key verdict &allow-other-keys)
  (push verdict t2j-checked))


(defun t2j-goto (text)
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0)))

(defun t2j-line () (buffer-substring-no-properties (line-beginning-position) (line-end-position)))

(defvar t2j-offered nil)
(defun t2j-choose (title)
  "Run `eglot-code-actions' as a user does, and pick the entry that starts with TITLE."
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_prompt items &rest _)
               (setq t2j-offered (mapcar #'car items))
               (or (cl-find-if (lambda (one) (string-prefix-p title one)) t2j-offered)
                   (error "No %s in %S" title t2j-offered))))
            (last-nonmenu-event 13))
    (eglot-code-actions (point) nil nil t)))

(defun t2j-hover ()
  (let ((hover (jsonrpc-request (eglot--current-server-or-lose) :textDocument/hover
                                (eglot--TextDocumentPositionParams))))
    (and hover (plist-get (plist-get hover :contents) :value))))

(defun t2j-differences ()
  "The lines of this buffer at which Flymake shows a difference."
  (flymake-start)
  (cl-loop for one in (flymake-diagnostics)
           when (string-match-p "differs from PyTorch" (flymake-diagnostic-text one))
           collect (line-number-at-pos (flymake-diagnostic-beg one))))

(defun t2j-open (name)
  (find-file (expand-file-name name t2j-folder))
  (unless (derived-mode-p 'python-mode) (python-mode)))

(defun t2j-session ()
  (setq eglot-sync-connect 60 eglot-confirm-server-initiated-edits nil eglot-autoshutdown nil
        eglot-send-changes-idle-time 0 make-backup-files nil create-lockfiles nil
        python-indent-guess-indent-offset nil)
  (t2j-open "net.py")
  (let* ((source (current-buffer)) converted right)
    ;; In batch mode Emacs has no init file, and then it saves nothing.
    (setq user-init-file (expand-file-name "../init.el" t2j-folder)
          custom-file (expand-file-name "../custom.el" t2j-folder))
    (call-interactively #'eglot)
    (t2j-wait "the server" (lambda () (with-current-buffer source (eglot-managed-p))))

    ;; Nothing of this folder runs until the user says so.
    (t2j-see 'refused (condition-case problem (progn (t2j "check") "it ran") (error (format "%S" problem))))
    (t2j-trust)

    (t2j-goto "gelu")
    (t2j-see 'hover (t2j-wait "a hover with this call"
                              (lambda () (let ((text (t2j-hover)))
                                           (and text (string-match-p "self\\.fc" text) text)))))
    (t2j-choose "Rewrite torch.nn.functional.gelu")
    (t2j-see 'offered (vconcat t2j-offered))
    (t2j-goto "jax.nn.gelu")
    (t2j-see 'expression (t2j-line))
    (undo-boundary)
    (primitive-undo 1 buffer-undo-list)
    (revert-buffer t t t)

    (goto-char (point-min))
    (t2j-wait "the analysis" (lambda () (and (t2j-goto "gelu") (string-match-p "self\\.fc" (or (t2j-hover) "")))))
    (t2j-choose "Convert file to JAX")
    (t2j-wait "the converted file" (lambda () (file-exists-p (expand-file-name "net_jax.py" t2j-folder))))
    (t2j-open "net_jax.py")
    (setq converted (current-buffer))
    (t2j-wait "its management" (lambda () (eglot--maybe-activate-editing-mode) (eglot-managed-p)))
    (t2j-wait "the verdict" (lambda () (equal (car t2j-checked) "equivalent")))
    (t2j-see 'first (car t2j-checked))

    (t2j-goto "jax.nn.gelu")
    (setq right (t2j-line))
    (t2j-see 'planted (line-number-at-pos))
    (search-forward ", approximate=False")
    (replace-match "")
    (eglot--signal-textDocument/didChange)
    (t2j-see 'found (car (t2j-wait "the mistake's diagnostic" #'t2j-differences)))
    (t2j-see 'explained (t2j "explainDifference" "Net"))
    (t2j-goto "jax.nn.gelu")
    (t2j-choose "Write this as the rules convert it")
    (t2j-goto "jax.nn.gelu")
    (t2j-see 'fixed (if (equal (t2j-line) right) t :json-false))
    (eglot--signal-textDocument/didChange)
    (t2j-wait "the diagnostics to go" (lambda () (null (t2j-differences))))
    (t2j-wait "the second verdict" (lambda () (equal (car t2j-checked) "equivalent")))
    (t2j-see 'last (car t2j-checked))
    (t2j "pauseChecks")
    (t2j-wait "the pause" (lambda () (equal t2j-status "paused")))
    (t2j-see 'status t2j-status)
    (with-current-buffer converted (set-buffer-modified-p nil))
    (with-current-buffer source (set-buffer-modified-p nil) (eglot-shutdown (eglot-current-server)))
    (t2j-see 'ended t)))

(condition-case problem
    (t2j-session)
  (error (t2j-see 'error (format "%S" problem))
         (t2j-see 'offered (vconcat t2j-offered))
         (t2j-see 'checked (vconcat t2j-checked))))
(with-temp-file (getenv "T2J_RESULT")
  (insert (json-encode t2j-seen)))
(kill-emacs 0)
;;; session.el ends here
